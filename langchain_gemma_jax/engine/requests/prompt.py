"""``Prompt``: spans of tokens, and of media, which are identified by a digest.

Each place of a prompt has an id, which the model reads, and a key, by which it is compared with conversations that are
in memory. A token's key is its id. Different images have the same placeholder ids, so the keys of a media span come
from its digest.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy.typing as npt


KEY_TYPE = "q"  # 64 bits: ids are not negative, keys of media are
_KEY_BYTES = 8


@dataclass(frozen=True)
class TokenSpan:
    """A span of tokens. ``Prompt`` keeps the keys of a span as they are: they must not be changed afterwards."""

    ids: Sequence[int]

    @property
    def keys(self) -> array[int]:
        return token_keys(self.ids)


@dataclass(frozen=True)
class MediaSpan:
    """A medium, such as an image or a sound, in the place of some tokens.

    Words that are read with it, because it sees them, are a part of it: with other words it is another one.
    """

    ids: tuple[int, ...]  # its placeholders, and then its words
    digest: bytes  # of its content, and of everything that changes the encoder's input
    # The encoder's input. None: no encoder, the placeholders are read like any other ids.
    inputs: Mapping[str, npt.NDArray[Any]] | None = field(default=None, compare=False, repr=False)
    words: int = 0  # of the ids, so many at the end are words

    def __post_init__(self) -> None:
        if not self.ids or not self.digest or not 0 <= self.words < len(self.ids):
            raise ValueError("expected a media span with placeholder ids and a digest, found one of them empty")

    @property
    def soft(self) -> int:
        """The number of its placeholders, each of which stands for a soft token."""
        return len(self.ids) - self.words

    @property
    def keys(self) -> array[int]:
        """Keys that no token and no other content has: a place's key identifies the content and the place in it."""
        words = array(KEY_TYPE, self.ids[self.soft :]).tobytes()
        found = array(KEY_TYPE, hashlib.shake_128(self.digest + words).digest(_KEY_BYTES * len(self.ids)))
        return array(KEY_TYPE, (key | -(1 << 63) for key in found))  # below zero, where ids never are


Span: TypeAlias = TokenSpan | MediaSpan


class BesideWeights(Protocol):
    """An adapter of a model, as the keys of a prompt depend on it."""

    @property
    def digest(self) -> bytes:
        """A digest of all that changes keys and values."""
        ...


@dataclass(frozen=True)
class PlacedSpan:
    """A medium, and its first place in a prompt."""

    start: int
    span: MediaSpan

    @property
    def end(self) -> int:
        return self.start + len(self.span.ids)


@dataclass(frozen=True)
class Prompt:
    """The prompt of a request."""

    spans: tuple[Span, ...]
    adapter: BesideWeights | None = None  # that it is read with, so that its keys are no other's
    ids: array[int] = field(init=False, repr=False, compare=False)  # as many as keys, which they are without media
    keys: array[int] = field(init=False, repr=False, compare=False)  # both of typecode KEY_TYPE
    media: tuple[PlacedSpan, ...] = field(init=False, repr=False, compare=False)  # those with an encoder's input

    def __post_init__(self) -> None:
        media: list[PlacedSpan] = []
        if len(self.spans) == 1 and isinstance(self.spans[0], TokenSpan):
            ids = keys = self.spans[0].keys
        else:
            ids, keys = array(KEY_TYPE), array(KEY_TYPE)
            for span in self.spans:
                if isinstance(span, MediaSpan) and span.inputs is not None:
                    media.append(PlacedSpan(len(ids), span))
                ids.extend(iter(span.ids))
                keys.extend(span.keys)
        if self.adapter is not None and keys:  # a conversation is reused from its first key on, so that one is enough
            keys = array(KEY_TYPE, keys)
            keys[0] = _marked(keys[0], self.adapter.digest)
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "media", tuple(media))

    @property
    def media_tokens(self) -> int:
        """The number of its tokens that are placeholders of media."""
        return sum(span.soft for span in self.spans if isinstance(span, MediaSpan))

    @classmethod
    def of_tokens(cls, ids: Sequence[int]) -> Prompt:
        """Return a prompt of tokens alone. An array of keys is not copied."""
        return cls((TokenSpan(ids),))

    def under(self, adapter: BesideWeights | None) -> Prompt:
        """Return the same prompt, read with an adapter beside the model's weights. None: with none."""
        return self if adapter is self.adapter else Prompt(self.spans, adapter)

    def __len__(self) -> int:
        return len(self.ids)


def _marked(key: int, adapter: bytes) -> int:
    """Return a key that stands for another one under an adapter: no id, and below zero exactly if that one is."""
    digest = hashlib.sha256(adapter + key.to_bytes(_KEY_BYTES, "little", signed=True)).digest()
    number = int.from_bytes(digest[:_KEY_BYTES], "little") >> 1  # 63 bits
    return number - (1 << 63) if key < 0 else number | (1 << 62)  # ids are far below that


def whole_media(keys: Sequence[int], length: int) -> int:
    """Return the largest length up to ``length`` that does not end inside a medium.

    A place inside a medium can depend on the later ones, so a medium is read and reused as a whole. Adjacent media
    count as one.
    """
    if not 0 < length < len(keys) or keys[length] >= 0:
        return length
    while length and keys[length - 1] < 0:
        length -= 1
    return length


def token_keys(ids: Iterable[int]) -> array[int]:
    """Return the keys of tokens: their ids. An array of keys is returned as it is."""
    return ids if isinstance(ids, array) and ids.typecode == KEY_TYPE else array(KEY_TYPE, ids)
