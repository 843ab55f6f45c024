"""A rendered conversation: pieces of text and control tokens, and where its parts begin and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from langchain_gemma_jax.dialects.conversation.messages import MediaPart
from langchain_gemma_jax.errors import InputError, UnsupportedModelError
from langchain_gemma_jax.stopping import EVERY, check, looking


class Encoder(Protocol):
    """As much of a tokenizer as encoding a prompt needs."""

    def control_id(self, name: str) -> int | None: ...

    def encode_text(self, text: str) -> list[int]: ...


class Placed(Protocol):
    """As much of a medium that a model was prepared for as encoding a prompt needs: words before it, and its ids."""

    @property
    def said(self) -> str: ...

    @property
    def before(self) -> tuple[int, ...]: ...

    @property
    def placeholders(self) -> tuple[int, ...]: ...

    @property
    def after(self) -> tuple[int, ...]: ...


Placing: TypeAlias = Callable[[MediaPart], Sequence[tuple[str, Placed]]]  # each with what it is: image or audio
Counted: TypeAlias = Callable[[int], object]


@dataclass(frozen=True)
class PromptPiece:
    """A control token by its string, or text in which nothing is one, whoever wrote it.

    Where an image or a sound stands, ``medium`` is it, the text is the format's name for one, and ``apart`` is the text
    that stands around what takes its place.
    """

    text: str
    is_control: bool = False
    medium: MediaPart | None = None
    apart: str = ""


@dataclass(frozen=True)
class WrittenMessage:
    """Which pieces of a prompt, ``pieces[start:end]``, the model wrote as one message, without the end of its turn."""

    message: int
    start: int
    end: int
    thoughts: bool = False  # whether thoughts in it are still shown to the model
    in_thought: int | None = None  # behind so many pieces its thought begins, if one is shown


@dataclass(frozen=True)
class EncodedPrompt:
    """A prompt's tokens. ``system`` and ``marks`` are those of the prompt, counted in tokens."""

    ids: tuple[int, ...]
    system: int
    marks: tuple[int, ...]
    media: tuple[tuple[int, str, Placed], ...] = ()  # each with the place of its first placeholder, and what it is


@dataclass(frozen=True)
class RenderedPrompt:
    """What a model reads. ``prompt.text`` is its official format, byte for byte."""

    pieces: tuple[PromptPiece, ...]
    system: int = 0  # so many pieces, from the first, are the system prompt with its tools
    marks: tuple[int, ...] = ()  # behind so many pieces a turn is complete
    written: tuple[WrittenMessage, ...] = ()
    in_thought: bool = False  # it ends inside a thought, so the model goes on thinking: tell the parser
    stops: tuple[str, ...] = ()  # the control tokens with which a model ends what it writes
    thought: tuple[str, str] | None = None  # the control tokens around a thought

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def characters(self) -> int:
        """How many there are in its texts, control tokens aside."""
        return sum(len(piece.text) for piece in looking(self.pieces) if not piece.is_control)

    def encode(
        self,
        tokenizer: Encoder,
        generated: Mapping[int, Sequence[int]] | None = None,
        placing: Placing | None = None,
        counted: Counted | None = None,
    ) -> EncodedPrompt:
        """Return the prompt's tokens.

        Text between two control tokens is encoded in one go, so the ids are those that the model was trained on.
        Nothing but a piece that is a control token becomes one.

        Args:
            tokenizer: the model's.
            generated: the ids that the model generated, by the number of the message that they became. They take the
                place of what the message is rendered as, because text that is encoded anew can have other ids. An end
                of turn at their end may be there or not. They are left out where the format no longer shows
                the thoughts that are in them.
            placing: gives what stands for an image or a sound; for a document, what stands for each page.
            counted: hears how many tokens there are so far, now and then; it raises where they are too many.

        Raises:
            UnsupportedModelError: the vocabulary lacks a control token of this format.
            InputError: there is an image or a sound, and nothing that places it.
        """
        runs, counts, at = _Runs(tokenizer, placing, counted), {0: 0}, 0
        noted = {self.system, *self.marks}
        for start, end, ids in self._replacements(tokenizer, generated or {}):
            self._add(runs, counts, noted, at, start)
            runs.ids(ids)
            at = end
        self._add(runs, counts, noted, at, len(self.pieces))
        counts[len(self.pieces)] = len(runs.done())
        ids, marks = tuple(runs.done()), tuple(counts[mark] for mark in self.marks)
        return EncodedPrompt(ids, counts[self.system], marks, tuple(runs.media))

    def _add(self, runs: _Runs, counts: dict[int, int], noted: set[int], start: int, end: int) -> None:
        """Encode some of the pieces, and note how many tokens there are at the system prompt's end and at marks."""
        for number in looking(range(start, end)):
            if number in noted:
                counts[number] = len(runs.done())
            piece = self.pieces[number]
            if piece.medium is not None:
                runs.medium(piece.medium, piece.apart)
            elif piece.is_control:
                runs.control(piece.text)
            else:
                runs.text(piece.text)

    def _replacements(
        self, tokenizer: Encoder, generated: Mapping[int, Sequence[int]]
    ) -> Iterator[tuple[int, int, Sequence[int]]]:
        """Give which pieces are replaced, from one up to another, and by which ids."""
        stops = {tokenizer.control_id(name) for name in self.stops}
        begin, end = (tokenizer.control_id(name) for name in self.thought or ("", ""))
        done: set[int] = set()
        for written in looking(self.written):
            ids = generated.get(written.message)
            if ids is None or (not written.thoughts and (begin in ids or end in ids)):
                continue
            start = written.start
            if written.in_thought is not None and begin not in ids:  # the prompt had begun the thought already
                start = written.in_thought
            if written.message in done:  # it is rendered in two places, and the first one got all the ids
                ids = ()
            done.add(written.message)
            yield start, written.end, ids[:-1] if ids and ids[-1] in stops else ids


class _Runs:
    """Collects ids, joining text that stands together."""

    def __init__(self, tokenizer: Encoder, placing: Placing | None, counted: Counted | None) -> None:
        self._tokenizer, self._placing, self._counted = tokenizer, placing, counted
        self.media: list[tuple[int, str, Placed]] = []
        self._ids: list[int] = []
        self._run: list[str] = []

    def text(self, text: str) -> None:
        self._run.append(text)

    def control(self, name: str) -> None:
        token_id = self._tokenizer.control_id(name)
        if token_id is None:
            raise UnsupportedModelError(
                f"This format needs the control token {name!r}, and the model's vocabulary does not have it. Name the "
                "format that the model was trained in, or leave the choice to the checkpoint."
            )
        self.ids([token_id])

    def medium(self, part: MediaPart, apart: str) -> None:
        if self._placing is None:
            raise InputError(f"{part.block.at}: this prompt has an image or a sound in it, and nothing to place it.")
        for kind, placed in self._placing(part):
            self.text(placed.said + apart)
            self.ids(placed.before)
            self.media.append((len(self.done()), kind, placed))
            self.ids(placed.placeholders)
            self.ids(placed.after)
            self.text(apart)

    def ids(self, ids: Sequence[int]) -> None:
        self.done().extend(ids)

    def done(self) -> list[int]:
        """Return all the ids so far. The text that comes behind is encoded apart from them."""
        if self._run:
            self._ids += self._tokenizer.encode_text("".join(self._run))
            self._run.clear()
            if self._counted is not None:
                self._counted(len(self._ids))
        return self._ids


class PromptWriter:
    """Writes the pieces of a prompt one after the other."""

    def __init__(self) -> None:
        self.marks: list[int] = []
        self.written: list[WrittenMessage] = []
        self._pieces: list[PromptPiece] = []
        self._text: list[str] = []  # of the piece that is being written
        self._times = 0  # that something was written

    @property
    def pieces(self) -> list[PromptPiece]:
        """The pieces so far. The text that is written from here on joins none of them."""
        if self._text:
            self._pieces.append(PromptPiece("".join(self._text)))
            self._text.clear()
        return self._pieces

    def control(self, *names: str) -> None:
        self._look()
        self.pieces.extend(PromptPiece(name, is_control=True) for name in names)

    def text(self, text: str) -> None:
        self._look()
        if text:
            self._text.append(text)

    def medium(self, part: MediaPart, name: str, apart: str = "") -> None:
        """Write an image or a sound, which the format calls by this name, with a text around it."""
        self.pieces.append(PromptPiece(name, is_control=True, medium=part, apart=apart))

    def cut(self) -> int:
        """Return how many pieces there are. The text that is written from here on joins none of them."""
        return len(self.pieces)

    def mark(self) -> None:
        """Mark the end of a turn."""
        self.marks.append(self.cut())

    def wrote(self, message: int, start: int, *, thoughts: bool = False, in_thought: int | None = None) -> None:
        """Note that the model wrote a message, from piece number ``start`` up to here. See ``WrittenMessage``."""
        self.written.append(WrittenMessage(message, start, self.cut(), thoughts, in_thought))

    def _look(self) -> None:
        """See now and then whether somebody still waits for the prompt."""
        if self._times % EVERY == 0:
            check()
        self._times += 1
