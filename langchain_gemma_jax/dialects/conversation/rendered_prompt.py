"""A rendered conversation: pieces of text and control tokens, with the places where its parts begin and end."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from langchain_gemma_jax.dialects.conversation.messages import MediaPart
from langchain_gemma_jax.errors import InputError, UnsupportedModelError
from langchain_gemma_jax.stopping import EVERY, check, looking


class Encoder(Protocol):
    """The part of a tokenizer that encoding a prompt needs."""

    def control_id(self, name: str) -> int | None: ...

    def encode_text(self, text: str) -> list[int]: ...


class Placed(Protocol):
    """The part of a prepared medium that encoding a prompt needs: the text before it, and its token ids."""

    @property
    def caption(self) -> str: ...

    @property
    def before(self) -> tuple[int, ...]: ...

    @property
    def placeholders(self) -> tuple[int, ...]: ...

    @property
    def after(self) -> tuple[int, ...]: ...


Placing: TypeAlias = Callable[[MediaPart], Sequence[tuple[str, Placed]]]  # each with its kind: image or audio
Counted: TypeAlias = Callable[[int], object]


@dataclass(frozen=True)
class PromptPiece:
    """A control token by its string, or text in which nothing is taken for a control token.

    For an image or a sound, ``medium`` is the medium, the text is the format's token for one, and ``apart`` is the text
    around the tokens that take its place.
    """

    text: str
    is_control: bool = False
    medium: MediaPart | None = None
    apart: str = ""


@dataclass(frozen=True)
class WrittenMessage:
    """A message that the model wrote: the pieces ``pieces[start:end]`` of a prompt, without the end of the turn."""

    message: int
    start: int
    end: int
    thoughts: bool = False  # True if the prompt still has its thoughts
    in_thought: int | None = None  # the number of pieces before its thought, if the prompt has one


@dataclass(frozen=True)
class EncodedPrompt:
    """A prompt's tokens. ``system``, ``marks`` and ``both_ways`` are the rendered prompt's, counted in tokens."""

    ids: array[int]  # of 64 bits, as the engine compares them: it takes them without a copy
    system: int
    marks: tuple[int, ...]
    media: tuple[tuple[int, str, Placed], ...] = ()  # each with the index of its first placeholder, and its kind
    both_ways: int = 0


@dataclass(frozen=True)
class RenderedPrompt:
    """A conversation in a chat format. ``prompt.text`` is the official format, byte for byte."""

    pieces: tuple[PromptPiece, ...]
    system: int = 0  # the number of pieces of the system prompt with its tools, at the beginning
    marks: tuple[int, ...] = ()  # the numbers of pieces after which a turn is complete
    written: tuple[WrittenMessage, ...] = ()
    in_thought: bool = False  # True if it ends inside a thought, which the model continues: pass it to the parser
    stops: tuple[str, ...] = ()  # the control tokens with which a model ends what it writes
    thought: tuple[str, str] | None = None  # the control tokens around a thought
    both_ways: int = 0  # the number of pieces at the beginning that are read together, each seeing the later ones too

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def characters(self) -> int:
        """The number of characters in its text, without control tokens."""
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
        Only pieces that are control tokens become control tokens.

        Args:
            tokenizer: the model's.
            generated: the ids that the model generated, by message number. They replace the rendered message, because
                the same text can be encoded to other ids. They may end with an end of turn. They are not used where
                the format no longer shows the thoughts that are in them.
            placing: returns what takes the place of an image or a sound; for a document, of each of its pages.
            counted: called now and then with the number of tokens so far; it raises an error if they are too many.

        Raises:
            UnsupportedModelError: the vocabulary lacks a control token of this format.
            InputError: there is an image or a sound, and no ``placing``.
        """
        runs, counts, at = _Runs(tokenizer, placing, counted), {0: 0}, 0
        noted = {self.system, self.both_ways, *self.marks}
        for start, end, ids in self._replacements(tokenizer, generated or {}):
            self._add(runs, counts, noted, at, start)
            runs.ids(ids)
            at = end
        self._add(runs, counts, noted, at, len(self.pieces))
        ids = runs.done()
        counts[len(self.pieces)] = len(ids)
        marks = tuple(counts[mark] for mark in self.marks)
        return EncodedPrompt(ids, counts[self.system], marks, tuple(runs.media), counts[self.both_ways])

    def _add(self, runs: _Runs, counts: dict[int, int], noted: set[int], start: int, end: int) -> None:
        """Encode some of the pieces, and note the number of tokens at the end of the system prompt and at marks."""
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
        """Yield ranges of pieces and the generated ids that replace them: (start, end, ids)."""
        stops = {tokenizer.control_id(name) for name in self.stops}
        begin, end = (tokenizer.control_id(name) for name in self.thought or ("", ""))
        done: set[int] = set()
        for written in looking(self.written):
            ids = generated.get(written.message)
            if ids is None or (not written.thoughts and (begin in ids or end in ids)):
                continue
            start = written.start
            if written.in_thought is not None and begin not in ids:  # the prompt had already begun the thought
                start = written.in_thought
            if written.message in done:  # the message is rendered in two places, and the first one took all the ids
                ids = ()
            done.add(written.message)
            yield start, written.end, ids[:-1] if ids and ids[-1] in stops else ids


class _Runs:
    """Collects ids, joining text that stands together."""

    def __init__(self, tokenizer: Encoder, placing: Placing | None, counted: Counted | None) -> None:
        self._tokenizer, self._placing, self._counted = tokenizer, placing, counted
        self.media: list[tuple[int, str, Placed]] = []
        self._ids = array("q")
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
            self.text(placed.caption + apart)
            self.ids(placed.before)
            self.media.append((len(self.done()), kind, placed))
            self.ids(placed.placeholders)
            self.ids(placed.after)
            self.text(apart)

    def ids(self, ids: Sequence[int]) -> None:
        self.done().extend(iter(ids))

    def done(self) -> array[int]:
        """Return all the ids so far. Text that follows is encoded separately."""
        if self._run:
            self._ids.fromlist(self._tokenizer.encode_text("".join(self._run)))
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
        self._text: list[str] = []  # text of the current piece
        self._times = 0  # the number of writes

    @property
    def pieces(self) -> list[PromptPiece]:
        """The pieces so far. Text that follows begins a new piece."""
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
        """Write an image or a sound: the format's token for one, with a text around it."""
        self.pieces.append(PromptPiece(name, is_control=True, medium=part, apart=apart))

    def cut(self) -> int:
        """Return the number of pieces so far. Text that follows begins a new piece."""
        return len(self.pieces)

    def mark(self) -> None:
        """Mark the end of a turn."""
        self.marks.append(self.cut())

    def wrote(self, message: int, start: int, *, thoughts: bool = False, in_thought: int | None = None) -> None:
        """Record a message of the model, from piece number ``start`` up to here. See ``WrittenMessage``."""
        self.written.append(WrittenMessage(message, start, self.cut(), thoughts, in_thought))

    def _look(self) -> None:
        """Check now and then that the call was not stopped."""
        if self._times % EVERY == 0:
            check()
        self._times += 1
