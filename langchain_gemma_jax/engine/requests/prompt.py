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
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy.typing as npt


KEY_TYPE = "q"  # 64 bits: ids are not negative, keys of media are
_KEY_BYTES = 8


@dataclass(frozen=True)
class TokenSpan:
    """A span of tokens. ``Prompt`` keeps the keys of a span as they are: nobody changes them afterwards."""

    ids: Sequence[int]

    @property
    def keys(self) -> array[int]:
        return token_keys(self.ids)


@dataclass(frozen=True)
class MediaSpan:
    """A medium, such as an image or a sound, in the place of some tokens."""

    ids: tuple[int, ...]  # its placeholders
    digest: bytes  # of its content, and of everything that changes the encoder's input
    # The encoder's input. None: no encoder, the placeholders are read like any other ids.
    inputs: Mapping[str, npt.NDArray[Any]] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.ids or not self.digest:
            raise ValueError("expected a media span with placeholder ids and a digest, found one of them empty")

    @property
    def keys(self) -> array[int]:
        """Keys that no token and no other content has: a place's key identifies the content and the place in it."""
        found = array(KEY_TYPE, hashlib.shake_128(self.digest).digest(_KEY_BYTES * len(self.ids)))
        return array(KEY_TYPE, (key | -(1 << 63) for key in found))  # below zero, where ids never are


Span: TypeAlias = TokenSpan | MediaSpan


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
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "media", tuple(media))

    @property
    def media_tokens(self) -> int:
        """The number of its tokens that are placeholders of media."""
        return sum(len(span.ids) for span in self.spans if isinstance(span, MediaSpan))

    @classmethod
    def of_tokens(cls, ids: Sequence[int]) -> Prompt:
        """Return a prompt of tokens alone. An array of keys is not copied."""
        return cls((TokenSpan(ids),))

    def __len__(self) -> int:
        return len(self.ids)


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
