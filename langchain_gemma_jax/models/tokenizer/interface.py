"""The interface of a tokenizer for the rest of the package."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path

from langchain_gemma_jax.errors import TokenizerError
from langchain_gemma_jax.models.tokenizer.library import only_tokenizer_errors
from langchain_gemma_jax.models.tokenizer.vocabulary import Vocabulary
from langchain_gemma_jax.stopping import looking

# The libraries sort a whole text's merges in one heap; in stretches of this length the cost is linear.
_STRETCH = 1 << 14
_LOOKS = 4  # stretches between two checks for a stop of the call

# A text that the library cannot encode exactly is split: at U+2581, which libraries use for a space, then into
# lines, then into words. Words that cannot be encoded even then are written in bytes.
_FINER = (
    re.compile(r"\u2581+|[^\u2581]+"),
    re.compile(r"[^\n]*\n+|[^\n]+"),
    re.compile(r"\s*\w+|\s+|[^\w\s]+"),
)

# Texts that a vocabulary has to encode without the fallback to bytes: models are not trained on texts in bytes.
_ORDINARY_TEXTS = ("Hello", " two  spaces ", "line\n\n\tline")


class Tokenizer(ABC):
    """Text to token ids and back.

    There are two separate ways to encode: ``encode_scaffold`` for this package's own text, where
    ``<start_of_turn>`` is a control token, and ``encode_text`` for all other text, where it
    is fifteen characters. ``decode(encode_text(text)) == text`` for every text.

    Tokenizers are immutable; any number of threads may use one.
    """

    _begin: tuple[int, ...] | None = None
    _around: tuple[tuple[int, ...], tuple[int, ...]] | None = None  # from the file's template, if it has one

    def __init__(self, path: Path, vocabulary: Vocabulary) -> None:
        """Check the library's encoding of ordinary text. Subclasses call this last, because it calls ``_spell``.

        Raises:
            TokenizerError: the library changes ordinary text. ``path`` is the file for the message.
        """
        self._path = path
        self._vocabulary = vocabulary
        self._pieces = vocabulary.pieces
        self._control_names = {token_id: name for name, token_id in vocabulary.control_tokens.items()}
        self._control_ids = frozenset(self._control_names)
        self._control_lengths = sorted({len(name) for name in vocabulary.control_tokens}, reverse=True)
        first_characters = "".join(sorted({re.escape(name[0]) for name in vocabulary.control_tokens}))
        self._control_start = re.compile(f"[{first_characters}]")
        self._check_ordinary_texts()

    @abstractmethod
    def _spell(self, text: str) -> Sequence[int]:
        """Return the library's ids for a text. The library should have no markers; the ids are checked in any case."""

    @property
    def vocab_size(self) -> int:
        """One more than the highest id. A model's embedding may have more rows, which no text is encoded to."""
        return len(self._pieces)

    @property
    def around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids before and after a text that is read as a whole: by the file's own template, or bos and eos."""
        return self._around or ((self.bos_id,), self.eos_ids[:1])

    @property
    def begin(self) -> tuple[int, ...]:
        """The ids before a text that a model goes on with: bos, or what another family's file puts there."""
        return (self.bos_id,) if self._begin is None else self._begin

    @property
    def bos_id(self) -> int:
        return self._vocabulary.bos_id

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The ids that end an answer: end of text, and end of turn if the vocabulary has one."""
        return self._vocabulary.eos_ids

    @property
    def pad_id(self) -> int:
        """The id of padding; the end of the text if the vocabulary has no padding token."""
        return self._vocabulary.pad_id

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Every string that steers the model, with its id, in the order of ids. ``control.py`` has the rule."""
        return self._vocabulary.control_tokens

    def control_id(self, name: str) -> int | None:
        return self.control_tokens.get(name)

    def control_name(self, token_id: int) -> str | None:
        """Return the control token's string; ``None`` if the id is of text."""
        return self._control_names.get(token_id)

    def token_bytes(self, token_id: int) -> bytes:
        """Return a token's bytes, maybe part of a character; empty for control tokens and beyond the vocabulary."""
        return self._pieces[token_id] if 0 <= token_id < len(self._pieces) else b""

    def encode_text(self, text: str) -> list[int]:
        """Return the ids of any text. There is no control token among them, and ``decode`` returns the same text.

        A Python string can hold halves of characters (lone surrogates), which are not valid text; each becomes U+FFFD.
        """
        ids: list[int] = []
        for part in looking(_stretches(_sound(text)), _LOOKS):
            with only_tokenizer_errors(self._path, "a tokenizer that can encode"):
                ids += self._exactly(part, _FINER)
        return ids

    @cached_property
    def longest_token(self) -> int:
        """Bytes of the longest token of text."""
        return self._pieces.longest

    def encode_scaffold(self, text: str) -> list[int]:
        """Return the ids of this package's own text, in which control strings become their ids.

        Never pass it a user's text.
        """
        ids: list[int] = []
        done = 0
        for start, name in self._control_strings(text):
            ids += self.encode_text(text[done:start])
            ids.append(self.control_tokens[name])
            done = start + len(name)
        return ids + self.encode_text(text[done:])

    def decode(self, ids: Iterable[int], *, keep_control: bool = False) -> str:
        """Return the text of the tokens. Bytes that are no UTF-8 become U+FFFD.

        Control tokens become nothing, or their names with ``keep_control``. In both cases they are a border:
        bytes on both sides of one never form a character together.
        """
        parts: list[str] = []
        for control, group in groupby(ids, self._control_ids.__contains__):
            if not control:
                parts.append(b"".join(map(self.token_bytes, group)).decode("utf-8", "replace"))
            elif keep_control:
                parts.extend(self._control_names[token_id] for token_id in group)
        return "".join(parts)

    def _exactly(self, text: str, finer: Sequence[re.Pattern[str]]) -> Sequence[int]:
        """Return ids that decode to exactly this text: by the library as far as it can, else in bytes."""
        ids = self._spell(text)
        if self._stand_for(ids, text):
            return ids
        for level, pattern in enumerate(finer, start=1):
            parts = pattern.findall(text)
            if len(parts) > 1:
                return [token_id for part in parts for token_id in self._exactly(part, finer[level:])]
        return [self._vocabulary.byte_ids[byte] for byte in text.encode()]

    def _stand_for(self, ids: Sequence[int], text: str) -> bool:
        pieces = self._pieces
        return self._control_ids.isdisjoint(ids) and b"".join([pieces[i] for i in ids]) == text.encode()

    def _control_strings(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the control strings in a text with their offsets: the leftmost first, and of those the longest."""
        done = 0
        for match in self._control_start.finditer(text):
            start = match.start()
            if start < done:
                continue
            candidates = (text[start : start + length] for length in self._control_lengths)
            name = next((candidate for candidate in candidates if candidate in self.control_tokens), None)
            if name is not None:
                yield start, name
                done = start + len(name)

    def _check_ordinary_texts(self) -> None:
        expected = "a vocabulary that spells ordinary text just as it is"
        for text in _ORDINARY_TEXTS:
            with only_tokenizer_errors(self._path, expected):
                ids = self._spell(text)
            if not self._stand_for(ids, text):
                found = f"{text!r} spelled as {self.decode(ids, keep_control=True)!r}"
                advice = "Gemma's tokenizers add no space in front, and fold neither case nor spaces."
                raise TokenizerError(self._path, expected, found, advice)


def _sound(text: str) -> str:
    """Return the text with surrogate pairs joined, and U+FFFD for each lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _stretches(text: str) -> Iterator[str]:
    """Yield the text in parts of bounded length, cut before spaces if there are any.

    No token of ordinary text crosses such a cut, so the ids are those of the whole text.
    """
    start = 0
    while len(text) - start > _STRETCH:
        window = text[start : start + _STRETCH]
        part = window[: window.rfind(" ") + 1].rstrip(" ") or window
        yield part
        start += len(part)
    yield text[start:]
