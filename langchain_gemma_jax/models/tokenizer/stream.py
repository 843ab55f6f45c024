"""Decoding of tokens as they come, without half characters."""

from __future__ import annotations

import codecs
from typing import Protocol


class Decodable(Protocol):
    """The part of a ``Tokenizer`` that decoding needs."""

    def token_bytes(self, token_id: int) -> bytes: ...

    def control_name(self, token_id: int) -> str | None: ...


class StreamDecoder:
    """Decodes one token at a time.

        decoder = StreamDecoder(tokenizer)
        for token_id in ids:
            print(decoder.push(token_id), end="")
        print(decoder.finish())

    The results of ``push`` and ``finish`` together are ``tokenizer.decode(ids)``. Each result has whole
    characters: the begin of a character is held back until the rest of it has come.
    """

    __slots__ = ("_held", "_keep_control", "_tokenizer")

    def __init__(self, tokenizer: Decodable, *, keep_control: bool = False) -> None:
        self._tokenizer = tokenizer
        self._keep_control = keep_control
        self._held = b""  # the begin of a character, at most three bytes

    def push(self, token_id: int) -> str:
        """Return the text that this token completes."""
        name = self._tokenizer.control_name(token_id)
        if name is not None:
            return self.finish() + (name if self._keep_control else "")
        data = self._held + self._tokenizer.token_bytes(token_id)
        text, used = codecs.utf_8_decode(data, "replace", False)
        self._held = data[used:]
        return text

    def finish(self) -> str:
        """Return the rest of the text: U+FFFD if the last character is incomplete. The decoder can be used again."""
        text = self._held.decode("utf-8", "replace")
        self._held = b""
        return text

    def copy(self) -> StreamDecoder:
        """Return an independent decoder in the same state, for a generation that forks."""
        twin = StreamDecoder(self._tokenizer, keep_control=self._keep_control)
        twin._held = self._held
        return twin

    __copy__ = copy
