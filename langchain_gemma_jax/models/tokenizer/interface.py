"""What the rest of the package sees of a tokenizer."""

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

# The libraries sort a whole text's merges in one heap; in stretches of this many characters the cost is linear.
_STRETCH = 1 << 14
_LOOKS = 4  # stretches between two looks at whether somebody waits for the ids

# How a text is taken apart where the library cannot spell it: at U+2581, by which libraries mean a space,
# then into lines, then into words. What cannot be spelt even then is written in bytes.
_FINER = (
    re.compile(r"\u2581+|[^\u2581]+"),
    re.compile(r"[^\n]*\n+|[^\n]+"),
    re.compile(r"\s*\w+|\s+|[^\w\s]+"),
)

# What a vocabulary has to spell by itself. Bytes would do for the rest, but a model has not learnt to read in bytes.
_ORDINARY_TEXTS = ("Hello", " two  spaces ", "line\n\n\tline")


class Tokenizer(ABC):
    """Text to token ids and back.

    Two ways in, and they never mix: ``encode_scaffold`` for what this package writes, where
    ``<start_of_turn>`` is a control token, and ``encode_text`` for what anybody else writes, where it
    is fifteen characters. ``decode(encode_text(text)) == text`` for every text.

    Objects do not change once made; any number of threads may use one.
    """

    _around: tuple[tuple[int, ...], tuple[int, ...]] | None = None  # as the file has it, if it does

    def __init__(self, path: Path, vocabulary: Vocabulary) -> None:
        """Subclasses call this last: it tries ``_spell``.

        Raises:
            TokenizerError: the library changes ordinary text. ``path`` is the file to name.
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
        """The library's ids for a text. It should know no markers; what it answers is checked either way."""

    @property
    def vocab_size(self) -> int:
        """One more than the highest id. A model's embedding may have more rows: nothing is ever encoded as those."""
        return len(self._pieces)

    @property
    def around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids before and behind a text that is read as a whole: by the file's own template, or bos and eos."""
        return self._around or ((self.bos_id,), self.eos_ids[:1])

    @property
    def bos_id(self) -> int:
        return self._vocabulary.bos_id

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Where an answer ends: the end of the text, and the end of a turn if the vocabulary has one."""
        return self._vocabulary.eos_ids

    @property
    def pad_id(self) -> int:
        """The id for positions that are not looked at; the end of the text where the vocabulary has no padding."""
        return self._vocabulary.pad_id

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Every string that steers the model, with its id, by rising id. ``control.py`` has the rule."""
        return self._vocabulary.control_tokens

    def control_id(self, name: str) -> int | None:
        return self.control_tokens.get(name)

    def control_name(self, token_id: int) -> str | None:
        """The control token's string; ``None`` if the id is of text."""
        return self._control_names.get(token_id)

    def token_bytes(self, token_id: int) -> bytes:
        """What a token stands for, maybe part of a character. Nothing for control tokens, and beyond the vocabulary."""
        return self._pieces[token_id] if 0 <= token_id < len(self._pieces) else b""

    def encode_text(self, text: str) -> list[int]:
        """Anybody's text. No control token can come out of it, and ``decode`` gives it back unchanged.

        Python strings can hold halves of characters (lone surrogates), which no text can; each becomes U+FFFD.
        """
        ids: list[int] = []
        for part in looking(_stretches(_sound(text)), _LOOKS):
            with only_tokenizer_errors(self._path, "a tokenizer that can encode"):
                ids += self._exactly(part, _FINER)
        return ids

    @cached_property
    def longest_token(self) -> int:
        """The bytes of the longest text that is one token."""
        return max(len(piece) for number, piece in enumerate(self._pieces) if number not in self._control_ids)

    def encode_scaffold(self, text: str) -> list[int]:
        """Return the ids of this package's own text, in which control strings become their ids.

        Never pass it anybody else's words.
        """
        ids: list[int] = []
        done = 0
        for start, name in self._control_strings(text):
            ids += self.encode_text(text[done:start])
            ids.append(self.control_tokens[name])
            done = start + len(name)
        return ids + self.encode_text(text[done:])

    def decode(self, ids: Iterable[int], *, keep_control: bool = False) -> str:
        """The text that the tokens stand for. Bytes that are no UTF-8 become U+FFFD.

        Control tokens stand for nothing, or with ``keep_control`` for their names. Either way they end what
        is before them: bytes on both sides of one never make a character together.
        """
        parts: list[str] = []
        for control, group in groupby(ids, self._control_ids.__contains__):
            if not control:
                parts.append(b"".join(map(self.token_bytes, group)).decode("utf-8", "replace"))
            elif keep_control:
                parts.extend(self._control_names[token_id] for token_id in group)
        return "".join(parts)

    def _exactly(self, text: str, finer: Sequence[re.Pattern[str]]) -> Sequence[int]:
        """Ids that stand for just this text, by the library as far as it can, in bytes where it cannot."""
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
        """The control strings in a text with where they start: the leftmost, and of those the longest."""
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
                found = f"{text!r} spelt as {self.decode(ids, keep_control=True)!r}"
                advice = "Gemma's tokenizers add no space in front, and fold neither case nor spaces."
                raise TokenizerError(self._path, expected, found, advice)


def _sound(text: str) -> str:
    """The text with its surrogates made whole where two belong together, and U+FFFD where one is alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _stretches(text: str) -> Iterator[str]:
    """The text in parts of bounded length, cut in front of spaces if there are any.

    No token of ordinary text reaches across such a place, so the ids are those of the whole text.
    """
    start = 0
    while len(text) - start > _STRETCH:
        window = text[start : start + _STRETCH]
        part = window[: window.rfind(" ") + 1].rstrip(" ") or window
        yield part
        start += len(part)
    yield text[start:]
