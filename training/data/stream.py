"""Conversations as an endless stream of packed batches.

Batch number ``k`` is a function of the plan and of ``k`` alone: any number of processes gives the same
stream, and training goes on where it stopped by asking for the next number.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeAlias

import numpy as np
import tokenizers

from training.data.conversation import Conversation
from training.data.mixture import conversation
from training.data.render import pieces
from training.data.side import Side

Batch: TypeAlias = dict[str, np.ndarray]
"""``tokens``, ``targets``, ``segments`` (0: padding) and ``weights``, each ``[row, token]``."""

LONGER = 4  # times as long are rows at the end of training
_MISSES = 12  # a batch is full when so many conversations in a row found no place in it


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

    def batch(self, number: int) -> Batch:
        """The batch of this number."""
        plan = self._plan
        ease = min(1.0, number * plan.rows * plan.length / plan.ramp_tokens) if plan.ramp_tokens else 1.0
        rows, length = plan.shape(number)
        shape = (rows, length + 1)
        tokens, segments, weights = np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        used, held, misses, index = [0] * rows, [0] * rows, 0, 0
        while misses < _MISSES:
            made = conversation(f"{plan.seed}/{number}/{index}", plan.side, ease)
            ids, by_model = self.encode(made)
            index += 1
            row = next((row for row in range(rows) if used[row] + len(ids) <= length + 1), None)
            if row is None:
                misses += 1
                continue
            misses = 0
            place = slice(used[row], used[row] + len(ids))
            held[row] += 1
            tokens[row, place], segments[row, place] = ids, held[row]
            weights[row, place] = np.where(by_model, 1.0, plan.prompt_weight)
            weights[row, used[row]] = 0.0  # nothing foretells how a conversation begins
            used[row] += len(ids)
        return {
            "tokens": tokens[:, :-1],
            "targets": tokens[:, 1:],
            "segments": segments[:, :-1],
            "weights": weights[:, 1:],
        }

    def encode(self, made: Conversation) -> tuple[list[int], list[bool]]:
        """A conversation's tokens, and which of them the model writes."""
        ids: list[int] = []
        by_model: list[bool] = []
        for piece in pieces(made):
            new = self._tokenizer.encode(piece.text, add_special_tokens=False).ids
            ids += new
            by_model += [piece.by_model] * len(new)
        return ids, by_model


_maker: Maker | None = None


def _start(plan: Plan) -> None:
    global _maker  # noqa: PLW0603  one a process of the pool
    _maker = Maker(plan)


def _batch(number: int) -> Batch:
    if _maker is None:
        raise RuntimeError("expected _start to have run in this process")
    return _maker.batch(number)
