"""The images, sounds and documents of a conversation, as a model takes them: decoded once, prepared once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from langchain_gemma_jax.chat.history.bounded_memory import BoundedMemory
from langchain_gemma_jax.dialects import Message
from langchain_gemma_jax.errors import InputError, MediaError
from langchain_gemma_jax.media.budget import Lease, leased
from langchain_gemma_jax.media.media_reader import MediaReader
from langchain_gemma_jax.media.medium import Medium, Picture
from langchain_gemma_jax.media.pictures import WHILE_RESIZED
from langchain_gemma_jax.stopping import looking

if TYPE_CHECKING:
    from langchain_gemma_jax.models.loading.model import Model
    from langchain_gemma_jax.models.seams.media_support import MediaSupport, PlacedMedium, Scan

V = TypeVar("V")

MOST_DECODED = 256 << 20  # bytes of pixels and samples
MOST_PLACED = 256 << 20  # bytes of what encoders are given


_KINDS = {"image": "an image", "audio": "a sound", "file": "a file"}
_SEES = "or use a model that sees: Gemma 3 from 4B on, or Gemma 4"
_ADVICE = {
    "image": f"Describe it in words, have a tool read it, {_SEES}",
    "audio": "Write down what is said, have a tool do so, or use a model that hears: Gemma 4 E2B or E4B",
    "file": f"Put its text into the message, have a tool read it, {_SEES}",
}


class MediaMemory:
    """The media that an engine's callers have decoded and prepared, the least recently used of which go first."""

    def __init__(self, most_decoded: int = MOST_DECODED, most_placed: int = MOST_PLACED) -> None:
        self.decoded: BoundedMemory[tuple[Medium, ...]] = BoundedMemory(most_decoded, _decoded_bytes)
        self.placed: BoundedMemory[tuple[PlacedMedium, ...]] = BoundedMemory(most_placed, _placed_bytes)


def media_memory() -> MediaMemory:
    """Return the memory of media that this process's engine owns. Closing the engine drops it."""
    from langchain_gemma_jax.engine.api.process import engine

    return engine().companion(MediaMemory)


@dataclass(frozen=True)
class MediaPlacing:
    """The conversion of one call's media into what a model takes."""

    model: Model
    scope: str
    reader: MediaReader
    max_soft_tokens: int | None = None
    scan: Scan | None = None  # how pieces of long pictures are shown too
    apart: tuple[int, ...] = ()  # what the chat format writes around each itself, as ids
    memory: MediaMemory = field(default_factory=media_memory, repr=False)

    def placed(self, messages: Sequence[Message]) -> Mapping[bytes, list[tuple[str, PlacedMedium]]]:
        """Return what stands for each image, sound and page of a conversation, by the digests of their blocks.

        Raises:
            MediaError: the model takes none of this kind, or it may not be read, is too much, or is none;
            StoppedError: the caller has left.
        """
        parts = [part for message in messages for part in message.media]
        if not parts:
            return {}
        if (support := self.model.media) is None:
            block = parts[0].block
            raise MediaError(
                block.at,
                f"this is {_KINDS[block.kind]}, and {self.model.name} reads text alone. {_ADVICE[block.kind]}; of GGUF "
                "files those with their model's mmproj file beside it",
            )
        self.reader.check_count([part.block for part in parts])
        found: dict[bytes, list[tuple[str, PlacedMedium]]] = {}
        tally = self.reader.tally()
        for part in looking(parts, 1):
            # What is decoded is held only until something was made of it, and no more of it than there is room for.
            with leased() as lease:
                media = self.reader.read(part.block, self._remembered, lease)
                tally.add(part.block, media)
                if part.block.digest not in found:
                    found[part.block.digest] = [
                        (_kind(each), placed)
                        for each in media
                        for placed in self._place(support, each, part.block.at, lease)
                    ]
                del media
        return found

    def _remembered(self, digest: bytes, read: Callable[[], tuple[Medium, ...]]) -> tuple[Medium, ...]:
        """Return what was decoded before, in this scope, or is decoded now."""
        return _kept(self.memory.decoded, self._key(digest), read)

    def _place(self, support: MediaSupport, medium: Medium, at: str, lease: Lease) -> tuple[PlacedMedium, ...]:
        key = self._key(medium.digest, self.model.name, support, self.max_soft_tokens, self.scan, self.apart)
        return _kept(self.memory.placed, key, partial(self._placed_now, support, medium, at, lease))

    def _placed_now(self, support: MediaSupport, medium: Medium, at: str, lease: Lease) -> tuple[PlacedMedium, ...]:
        try:
            lease.need(_while_placed(medium))
            found = support.place_all(medium, max_soft_tokens=self.max_soft_tokens, scan=self.scan)
        except MediaError:
            raise
        except InputError as error:
            raise MediaError(at, str(error).rstrip(".")) from error
        return tuple(map(self._within, found))

    def _within(self, placed: PlacedMedium) -> PlacedMedium:
        """Return a medium without what the chat format itself writes around it."""
        before, after = _without(placed.before, self.apart), _without(placed.after[::-1], self.apart[::-1])[::-1]
        return replace(placed, before=before, after=after)

    def _key(self, *parts: object) -> bytes:
        return hashlib.sha256(repr((self.scope, *parts)).encode("utf-8", "surrogatepass")).digest()


def _kept(memory: BoundedMemory[V], key: bytes, make: Callable[[], V]) -> V:
    found = memory.get(key)
    if found is None:
        found = make()
        memory.keep(key, found)
    return found


def _without(ids: tuple[int, ...], begin: tuple[int, ...]) -> tuple[int, ...]:
    """Return ids without those that the chat format has written already."""
    return ids[len(begin) :] if begin and ids[: len(begin)] == begin else ids


def _while_placed(medium: Medium) -> int:
    """Bytes needed beside a medium while the model's inputs are made of it."""
    if isinstance(medium, Picture):
        return medium.pixels.size // 3 * WHILE_RESIZED
    return medium.samples.nbytes


def _kind(medium: Medium) -> str:
    return "image" if isinstance(medium, Picture) else "audio"


def _decoded_bytes(media: tuple[Medium, ...]) -> int:
    return sum((each.pixels if isinstance(each, Picture) else each.samples).nbytes for each in media)


def _placed_bytes(placed: tuple[PlacedMedium, ...]) -> int:
    return sum(sum(array.nbytes for array in each.inputs.values()) + 8 * len(each) for each in placed)
