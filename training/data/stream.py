"""Conversations as an endless stream of packed batches.

Batch number ``k`` is a function of the plan and of ``k`` alone: any number of processes gives the same
stream, and training goes on where it stopped by asking for the next number.
"""

from __future__ import annotations

import multiprocessing
import zlib
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import TypeAlias

import numpy as np
import tokenizers

from training.data.conversation import Conversation
from training.data.drill import ASIDES, Text
from training.data.drills import Drills, share
from training.data.mixture import conversation
from training.data.pointers import pointers
from training.data.render import Piece, aside_pieces, opening, pieces
from training.data.shapes import SHAPES
from training.data.side import Side
from training.data.spelling import Spelling
from training.tokenizer import CONTROL

Batch: TypeAlias = dict[str, np.ndarray]
"""``tokens``, ``targets``, ``segments`` (a conversation's number times ``ASIDES``, and
that of its aside; 0: padding) and ``weights``, each ``[row, token]``; and ``scored``, the
places of the tokens whose loss is computed, ``[row, place]``; and ``looks`` and ``marks``, where heads should look, as
``pointers`` gives them for a row."""

LONGER = 4  # times as long are rows at the end of training
_MISSES = 3  # conversations that found no room make a row full
_SCORED = 0.4  # of a row: scores of all the vocabulary are a third of what training costs
_LEAST = 16  # tokens that are worth a drill


@dataclass(frozen=True)
class Plan:
    """What the stream is made of."""

    tokenizer: Path
    seed: str
    rows: int
    length: int
    ramp_tokens: int = 0  # over so many tokens conversations get harder
    long_from: int | None = None  # from this batch on, rows are longer and fewer
    prompt_weight: float = 0.1  # of tokens that the model reads and does not write
    strange: float = 0.0  # of tools: they do what no real word is for
    inner_weight: float = 1.0  # of tokens inside a word or a number: they are easier than where one begins or ends
    stage: int = 1  # of the training
    side: Side = Side.TRAIN

    def shape(self, number: int) -> tuple[int, int]:
        """Rows and their length in a batch."""
        longer = min(LONGER, self.rows) if self.long_from is not None and number >= self.long_from else 1
        return self.rows // longer, self.length * longer


def batches(plan: Plan, first: int = 0, workers: int = 0) -> Generator[Batch]:
    """The batches from number ``first`` on, made by so many processes (none: by this one)."""
    if workers == 0:
        maker = Maker(plan)
        yield from map(maker.batch, count(first))
        return
    numbers = count(first)
    with multiprocessing.get_context("spawn").Pool(workers, _start, (plan,)) as pool:
        waiting = deque(pool.apply_async(_batch, (next(numbers),)) for _ in range(3 * workers))
        while True:
            yield waiting.popleft().get()
            waiting.append(pool.apply_async(_batch, (next(numbers),)))


class Maker:
    """Makes batches."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tokenizer = tokenizers.Tokenizer.from_file(str(plan.tokenizer / "tokenizer.json"))
        plain = range(len(CONTROL), self._tokenizer.get_vocab_size())
        self._drills = Drills(plain, CONTROL.index("<bos>"), self._ids)
        vocabulary = self._tokenizer.get_vocab()
        self._spelling = spelling = Spelling.of(sorted(vocabulary, key=vocabulary.__getitem__), self._ids)
        self._kind = np.asarray(spelling.kind)

    def batch(self, number: int) -> Batch:
        """The batch of this number."""
        plan = self._plan
        read = number * plan.rows * plan.length
        ease = min(1.0, read / plan.ramp_tokens) if plan.ramp_tokens else 1.0
        drilled = share(ease)
        rows, length = plan.shape(number)
        shape = (rows, length + 1)
        tokens, segments, weights = np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        seeds = (f"{plan.seed}/{number}/{index}" for index in count())
        waiting: list[Text] = []  # what found no place in the rows before
        shapes: list[dict[int, Mapping[tuple[int, ...], int]]] = []  # of each row's conversations
        for row in range(rows):
            used = 0
            shapes.append({})
            for held, text in enumerate(self._row(seeds, ease, drilled, length + 1, waiting), 1):
                shapes[row][held] = text.shapes
                place = slice(used, used + len(text.ids))
                tokens[row, place], segments[row, place] = text.ids, held * ASIDES
                segments[row, place] += np.asarray(text.asides or 0, np.int32)
                weights[row, place] = np.where(text.follows, 1.0, plan.prompt_weight if text.prompts else 0.0)
                weights[row, place][self._inner(text.ids) & np.asarray(text.follows)] = plan.inner_weight
                begins = np.diff(segments[row, place], prepend=-1) != 0
                weights[row, place][begins] = 0.0  # nothing foretells how a conversation begins
                used += len(text.ids)
        seed = zlib.crc32(f"{plan.seed}/{number}".encode())
        looks = [
            pointers(tokens[row, :-1].tolist(), segments[row, :-1].tolist(), self._spelling, seed, shapes[row])
            for row in range(rows)
        ]
        return {
            "tokens": tokens[:, :-1],
            "targets": tokens[:, 1:],
            "segments": segments[:, :-1],
            "weights": weights[:, 1:],
            "scored": _scored(weights[:, 1:], seed),
            "looks": np.stack([look for look, _ in looks]),
            "marks": np.stack([marks for _, marks in looks]),
        }

    def _inner(self, ids: list[int]) -> np.ndarray:
        """Which of a text's tokens are inside a word or a number."""
        kind = self._kind[ids]
        inner: np.ndarray = (kind > 0) & (kind == np.roll(kind, 1))
        return inner

    def _row(self, seeds: Iterator[str], ease: float, drilled: float, room: int, waiting: list[Text]) -> Iterator[Text]:
        """Conversations, each as far as there is room, and drills in what is left."""
        misses, length = 0, room
        tried, waiting[:] = list(waiting), []
        while misses < _MISSES:
            text = tried.pop(0) if tried else self._text(next(seeds), ease, drilled)
            if (fitting := text.within(room)) is None:
                misses += 1
                if text.within(length) is not None:  # it may fit the next row
                    waiting.append(text)
                continue
            room -= len(fitting.ids)
            yield fitting
        waiting += tried
        while room > _LEAST and (filling := self._drills.short(next(seeds)).within(room)) is not None:
            room -= len(filling.ids)
            yield filling

    def _text(self, seed: str, ease: float, drilled: float) -> Text:
        if Random(seed).random() < drilled:
            return self._drills.text(seed)
        plan = self._plan
        return self.encode(conversation(seed, plan.side, ease, plan.strange, plan.stage))

    def encode(self, made: Conversation) -> Text:
        """A conversation's tokens, and which of them the model writes."""
        ids: list[int] = []
        by_model: list[bool] = []
        ends: list[int] = []
        asides: list[int] = []
        said: list[Iterable[Piece]] = [pieces(made)]
        if made.asides:
            said = [[opening(made)], *map(aside_pieces, (made.turns, *made.asides))]
        for number, spoken in enumerate(said):
            for piece in spoken:
                new = self._ids(piece.text)
                ids += new
                by_model += [piece.by_model] * len(new)
                asides += [number] * len(new)
                if piece.text == "\n" and not number:  # a turn of the model is over
                    ends.append(len(ids))
            if number:
                ends.append(len(ids))
        shapes = {tuple(self._ids(name)): SHAPES[kind] for name, kind in made.kinds.items()}
        return Text(ids, by_model, ends, asides=asides, shapes=shapes)

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _scored(weights: np.ndarray, seed: int) -> np.ndarray:
    """Places that count: those of the model's own tokens, and in what is left others, at random."""
    order = weights + 0.01 * np.random.default_rng(seed).random(weights.shape)
    count = round(_SCORED * weights.shape[1])
    return np.sort(np.argsort(-order, axis=1)[:, :count], axis=1).astype(np.int32)


_maker: Maker | None = None


def _start(plan: Plan) -> None:
    global _maker  # noqa: PLW0603  one a process of the pool
    _maker = Maker(plan)


def _batch(number: int) -> Batch:
    if _maker is None:
        raise RuntimeError("expected _start to have run in this process")
    return _maker.batch(number)
