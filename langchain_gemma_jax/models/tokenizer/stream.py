"""Text out of tokens as they come, never half a character."""

from __future__ import annotations

import codecs
from typing import Protocol


class Decodable(Protocol):
    """As much of a ``Tokenizer`` as decoding needs."""

    def token_bytes(self, token_id: int) -> bytes: ...

    def control_name(self, token_id: int) -> str | None: ...


class StreamDecoder:
    """Decodes one token at a time.

        decoder = StreamDecoder(tokenizer)
        for token_id in ids:
            print(decoder.push(token_id), end="")
        print(decoder.finish())

    What ``push`` and ``finish`` return, put together, is ``tokenizer.decode(ids)``. Each part is whole
    characters: a token that ends inside one gives nothing, or less, until the rest has come.
    """

    __slots__ = ("_held", "_keep_control", "_tokenizer")

    def __init__(self, tokenizer: Decodable, *, keep_control: bool = False) -> None:
        self._tokenizer = tokenizer
        self._keep_control = keep_control
        self._held = b""  # the begin of a character, three bytes at most

    def push(self, token_id: int) -> str:
        """The text that this token completes."""
        name = self._tokenizer.control_name(token_id)
        if name is not None:
            return self.finish() + (name if self._keep_control else "")
        data = self._held + self._tokenizer.token_bytes(token_id)
        text, used = codecs.utf_8_decode(data, "replace", False)
        self._held = data[used:]
        return text

    def finish(self) -> str:
        """What is left at the end: U+FFFD if the last character never became whole. Then it is ready for a new text."""
        text = self._held.decode("utf-8", "replace")
        self._held = b""
        return text

    def copy(self) -> StreamDecoder:
        """Return a decoder that goes on from here by itself, for a generation that forks."""
        twin = StreamDecoder(self._tokenizer, keep_control=self._keep_control)
        twin._held = self._held
        return twin

    __copy__ = copy
