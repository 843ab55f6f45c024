"""A prompt as the engine reads it: spans of tokens, and of media that are told apart by a digest.

Each place of a prompt has an id, which the model reads, and a key, which says whether a conversation that is in memory
already can be continued from it. A token's key is its id. Two images take the same placeholder ids and hold
different things, so the keys of a media span come from its digest.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy.typing as npt


KEY_TYPE = "q"  # 64 bits: ids are not negative, and the keys of media are
_KEY_BYTES = 8


@dataclass(frozen=True)
class TokenSpan:
    """Some tokens."""

    ids: tuple[int, ...]

    @property
    def keys(self) -> array[int]:
        return token_keys(self.ids)


@dataclass(frozen=True)
class MediaSpan:
    """An image, a sound, or anything else that stands in the place of some tokens."""

    ids: tuple[int, ...]  # the placeholders that it is read as
    digest: bytes  # of its content, and of all that decides what the model sees of it
    # What the model's encoder is given for it. None: nothing, the placeholders are read as any other ids.
    inputs: Mapping[str, npt.NDArray[Any]] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.ids or not self.digest:
            raise ValueError("expected a media span with placeholder ids and a digest, found one of them empty")

    @property
    def keys(self) -> array[int]:
        """Keys that no token has, and no other content: a place's key says where in which content it is."""
        found = array(KEY_TYPE, hashlib.shake_128(self.digest).digest(_KEY_BYTES * len(self.ids)))
        return array(KEY_TYPE, (key | -(1 << 63) for key in found))  # below zero, where ids never are


Span: TypeAlias = TokenSpan | MediaSpan


@dataclass(frozen=True)
class PlacedSpan:
    """A medium, and where in a prompt it begins."""

    start: int
    span: MediaSpan

    @property
    def end(self) -> int:
        return self.start + len(self.span.ids)


@dataclass(frozen=True)
class Prompt:
    """What a request reads before it answers."""

    spans: tuple[Span, ...]
    ids: array[int] = field(init=False, repr=False, compare=False)  # typecode "i"
    keys: array[int] = field(init=False, repr=False, compare=False)  # as long; typecode KEY_TYPE
    media: tuple[PlacedSpan, ...] = field(init=False, repr=False, compare=False)  # those that an encoder is asked for

    def __post_init__(self) -> None:
        ids, keys = array("i"), array(KEY_TYPE)
        media: list[PlacedSpan] = []
        for span in self.spans:
            if isinstance(span, MediaSpan) and span.inputs is not None:
                media.append(PlacedSpan(len(ids), span))
            ids.extend(span.ids)
            keys.extend(span.keys)
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "media", tuple(media))

    @property
    def media_tokens(self) -> int:
        """How many of its tokens stand for media."""
        return sum(len(span.ids) for span in self.spans if isinstance(span, MediaSpan))

    @classmethod
    def of_tokens(cls, ids: Iterable[int]) -> Prompt:
        """Return a prompt of tokens alone."""
        return cls((TokenSpan(tuple(ids)),))

    def __len__(self) -> int:
        return len(self.ids)


def whole_media(keys: Sequence[int], length: int) -> int:
    """Return the most of the first ``length`` places that do not end within a medium.

    What a place within it holds can depend on those behind, so a medium is read, and taken over, as a whole. Media
    without anything between them count as one.
    """
    if not 0 < length < len(keys) or keys[length] >= 0:
        return length
    while length and keys[length - 1] < 0:
        length -= 1
    return length


def token_keys(ids: Iterable[int]) -> array[int]:
    """Return the keys of tokens: their ids. Keys stay what they are."""
    return ids if isinstance(ids, array) and ids.typecode == KEY_TYPE else array(KEY_TYPE, ids)
