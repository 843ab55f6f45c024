"""Blocks of messages as decoded media: their bytes are read where that is allowed, and decoded within limits."""

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
    """The limits of one conversation's images, sounds and documents."""

    encoded_bytes: int = 32 * 1024 * 1024
    """The most bytes of one image, sound or document, as it is sent."""
    pixels: int = 50_000_000
    """The most pixels of an image, by its header. A phone's photo has up to 48 million."""
    sound_s: float = 600.0
    """The most seconds of a sound."""
    pages: int = 32
    """The most pages of a document."""
    document_s: int = 30
    """The most CPU seconds for drawing a document."""
    media: int = 64
    """The most images, sounds and pages of a conversation."""
    total_pixels: int = 200_000_000
    """The most pixels of a conversation."""
    link_s: float = 15.0
    """The most seconds for fetching a link, its redirects included."""
    redirects: int = 4
    """The most redirects of a link."""


@dataclass(frozen=True)
class MediaAccess:
    """Permissions to read bytes that are not in a block itself. By default there are none."""

    folders: tuple[str, ...] = ()
    """Folders of this machine whose files may be read, those of their subfolders included."""
    links: bool = False
    """True: http and https links to public addresses are fetched."""


def afresh(digest: bytes, read: Callable[[], tuple[Medium, ...]]) -> tuple[Medium, ...]:  # noqa: ARG001  as caches have it
    """Read again, without a cache."""
    return read()


@dataclass(frozen=True)
class MediaReader:
    """Reads the media of messages' blocks, within permissions and limits."""

    access: MediaAccess = field(default_factory=MediaAccess)
    limits: MediaLimits = field(default_factory=MediaLimits)
    by_link: LinkReader = field(default_factory=LinkReader)

    def read(
        self, block: MediaBlock, remembered: Remembered = afresh, lease: Lease | None = None
    ) -> tuple[Medium, ...]:
        """Return what a block holds: an image, a sound, or the pages of a document.

        Args:
            block: the bytes, or the place of them.
            remembered: a cache. It returns what was decoded before for a digest, or calls the function that decodes.
            lease: the lease for the memory of what is decoded and of what is made of it, which stays open.

        Raises:
            MediaAccessError: the block may not be read; MediaLimitError: it is too large; UnreadableMediaError: it is
            no medium, or a broken one; StoppedError: the result is not needed any more.
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
        """Return a new count of one conversation's media."""
        return MediaTally(self.limits)

    def check_count(self, blocks: Sequence[MediaBlock]) -> None:
        """Refuse more blocks than a conversation may have, before any of them is decoded.

        Raises:
            MediaLimitError: there are more.
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
        # The bytes of a file decide what it is. A block that is declared as an image is never read as a sound.
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
    """A count of a conversation's media. It refers to none of them, so each can be freed as soon as it was used."""

    def __init__(self, limits: MediaLimits) -> None:
        self._limits = limits
        self._count = self._pixels = 0

    def add(self, block: MediaBlock, media: Sequence[Medium]) -> None:
        """Count the media of a block.

        Raises:
            MediaLimitError: the conversation has more than it may have.
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
