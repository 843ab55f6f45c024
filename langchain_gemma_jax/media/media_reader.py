"""Blocks of messages as decoded media: their bytes are got where that is allowed, and decoded within bounds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from langchain_gemma_jax.errors import MediaAccessError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.allowed_files import allowed_file
from langchain_gemma_jax.media.block_forms import MediaBlock
from langchain_gemma_jax.media.budget import Lease
from langchain_gemma_jax.media.documents import looks_like_document, read_document
from langchain_gemma_jax.media.medium import Medium, Picture
from langchain_gemma_jax.media.picture_headers import looks_like_picture
from langchain_gemma_jax.media.pictures import read_picture
from langchain_gemma_jax.media.sounds import looks_like_sound, read_sound
from langchain_gemma_jax.media.web_links import LinkReader
from langchain_gemma_jax.stopping import check, current

Remembered: TypeAlias = Callable[[bytes, Callable[[], tuple[Medium, ...]]], tuple[Medium, ...]]


@dataclass(frozen=True, kw_only=True)
class MediaLimits:
    """The bounds of one conversation's images, sounds and documents."""

    encoded_bytes: int = 32 * 1024 * 1024
    """The most bytes of one image, sound or document, as it is sent."""
    pixels: int = 50_000_000
    """The most pixels of an image, as its header says. A photo of a telephone has up to 48 million."""
    sound_s: float = 600.0
    """How long a sound may be."""
    pages: int = 32
    """The most pages of a document."""
    document_s: int = 30
    """The most seconds of a processor that drawing a document may take."""
    media: int = 64
    """The most images, sounds and pages of a conversation."""
    total_pixels: int = 200_000_000
    """The most pixels of a conversation."""
    link_s: float = 15.0
    """How long a link may take, its redirects included."""
    redirects: int = 4
    """How often a link may lead to another."""


@dataclass(frozen=True)
class MediaAccess:
    """What may be read beside the bytes that a block holds itself: nothing, unless it is said."""

    folders: tuple[str, ...] = ()
    """Folders of this machine whose files may be named, with all that is below them."""
    links: bool = False
    """Whether http and https links to public addresses are fetched."""


def afresh(digest: bytes, read: Callable[[], tuple[Medium, ...]]) -> tuple[Medium, ...]:  # noqa: ARG001  as all of them
    """Return what is read, remembering nothing."""
    return read()


@dataclass(frozen=True)
class MediaReader:
    """What reads the blocks of messages."""

    access: MediaAccess = field(default_factory=MediaAccess)
    limits: MediaLimits = field(default_factory=MediaLimits)
    by_link: LinkReader = field(default_factory=LinkReader)

    def read(
        self, block: MediaBlock, remembered: Remembered = afresh, lease: Lease | None = None
    ) -> tuple[Medium, ...]:
        """Return what a block holds: an image, a sound, or the pages of a document.

        Args:
            block: where the bytes are.
            remembered: gives back what was decoded before of the same bytes, by their digest, or calls what decodes.
            lease: the memory for what is decoded, which is kept: also for what is made of it.

        Raises:
            MediaAccessError, MediaLimitError, UnreadableMediaError: it may not be read, is too much, or is none;
            StoppedError: nobody waits for it any more.
        """
        check()
        limits, at = self.limits, block.at
        with ExitStack() as opened:
            match block.form:
                case "path":
                    file = opened.enter_context(allowed_file(str(block.value), self.access.folders, at))
                    digest, get = block.digest + file.digest, partial(file.read, limits.encoded_bytes)
                case "link":
                    digest, get = block.digest, partial(self._fetched, block)
                    if not self.access.links:
                        raise MediaAccessError(
                            at, "links are off. Say ChatGemmaJax(allow_urls=True) where links to public addresses may "
                            "be fetched, or give the bytes",
                        )  # fmt: skip
                case _:
                    digest, get = block.digest, partial(self._inline, block)
            return remembered(hashlib.sha256(digest).digest(), lambda: self._decoded(block, get(), lease))

    def tally(self) -> MediaTally:
        """Return what counts the media of one conversation."""
        return MediaTally(self.limits)

    def check_count(self, blocks: Sequence[MediaBlock]) -> None:
        """Refuse more blocks than a conversation may have, before one of them is decoded.

        Raises:
            MediaLimitError: one is too many.
        """
        if len(blocks) > self.limits.media:
            raise _too_many(blocks[self.limits.media], self.limits.media)

    def _inline(self, block: MediaBlock) -> bytes:
        found = block.inline(self.limits.encoded_bytes)
        return b"" if found is None else found

    def _fetched(self, block: MediaBlock) -> bytes:
        limits, left = self.limits, current().left
        seconds = limits.link_s if left is None else min(left, limits.link_s)
        most, redirects = limits.encoded_bytes, limits.redirects
        return self.by_link.read(str(block.value), most=most, seconds=seconds, redirects=redirects, at=block.at)

    def _decoded(self, block: MediaBlock, data: bytes, lease: Lease | None) -> tuple[Medium, ...]:
        limits, at = self.limits, block.at
        # A file is what its bytes are. An image that is said to be one is never taken for a sound.
        if block.kind == "image" or (block.kind == "file" and looks_like_picture(data)):
            return (read_picture(data, limits.pixels, at, lease),)
        if block.kind == "audio" or looks_like_sound(data):
            return (read_sound(data, limits.sound_s, at, lease),)
        if looks_like_document(data):
            return read_document(data, limits.pages, at, cpu_s=limits.document_s, lease=lease)
        raise UnreadableMediaError(
            at, f"this file is no PDF, no image and no sound: it begins with {data[:8]!r}. Give what is in it as text"
        )


class MediaTally:
    """A count of a conversation's media. It keeps none of them: each may go once something was made of it."""

    def __init__(self, limits: MediaLimits) -> None:
        self._limits = limits
        self._count = self._pixels = 0

    def add(self, block: MediaBlock, media: Sequence[Medium]) -> None:
        """Count what was read of a block.

        Raises:
            MediaLimitError: that is more than a conversation may have.
        """
        limits = self._limits
        self._count += len(media)
        self._pixels += sum(each.pixels.size // 3 for each in media if isinstance(each, Picture))
        if self._count > limits.media:
            raise _too_many(block, limits.media)
        if self._pixels > limits.total_pixels:
            raise MediaLimitError(
                block.at, f"the images up to this one have more than the {limits.total_pixels:,} pixels that a "
                "conversation may have together. Make them smaller",
                "pixels of all",
            )  # fmt: skip


def _too_many(block: MediaBlock, most: int) -> MediaLimitError:
    return MediaLimitError(
        block.at, f"more than the {most} images, sounds and pages that a conversation may have. Leave out old ones",
        "media",
    )  # fmt: skip
