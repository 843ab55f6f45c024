"""The kind and the size of an image by its first bytes, before any decoder sees it."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from langchain_gemma_jax.errors import MediaLimitError, UnreadableMediaError

KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")  # by Pillow's names
MOST_SEGMENTS = 20_000  # of a JPEG: all of them are read
_STANDALONE = {0x01, *range(0xD0, 0xD9)}  # JPEG's markers without a length
_NO_FRAMES = {0xC4, 0xC8, 0xCC}  # codes among those of frames that begin no frame
_SCAN, _END = 0xDA, 0xD9
_WITH_LENGTH = {0xC4, 0xCC, 0xDB, 0xDD, _SCAN, 0xFE, *range(0xE0, 0xF0)}
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")  # no restarts, and not 0xFF00, which is data within pixels


class PictureHeader(NamedTuple):
    """An image's kind and size, from its header."""

    kind: str
    width: int
    height: int


def picture_header(data: bytes, at: str) -> PictureHeader:
    """Return an image's kind and size, from its header.

    Raises:
        UnreadableMediaError: the kind is not read here, or the header is broken.
    """
    kind = _kind(data)
    if kind is None:
        known = ", ".join(KINDS)
        raise UnreadableMediaError(
            at, f"this is no image of a kind that is read here: expected {known}; {_found(data)}"
        )
    try:
        width, height = _SIZES[kind](data)
    except (struct.error, IndexError):
        width = height = 0
    if width < 1 or height < 1:
        raise UnreadableMediaError(at, f"the image is a {kind} whose beginning is broken or truncated")
    return PictureHeader(kind, width, height)


def jpeg_scans(data: bytes, at: str) -> int:
    """Return the number of scans of a JPEG. A decoder goes over all pixels for each scan, however little is in it.

    Markers are read as decoders read them: a segment that has a length is skipped whole, any other marker alone.

    Raises:
        MediaLimitError: the JPEG has more than ``MOST_SEGMENTS`` segments.
    """
    scans, place = 0, 2
    for _ in range(MOST_SEGMENTS):
        found = _MARKER.search(data, place)
        if found is None or (marker := data[found.start() + 1]) == _END:
            return scans
        scans += marker == _SCAN
        place = found.end()
        if marker in _WITH_LENGTH:
            place += int.from_bytes(data[place : place + 2], "big")
    raise MediaLimitError(
        at, f"a JPEG has at most {MOST_SEGMENTS:,} segments; this one has more. Save it again", "segments"
    )


def looks_like_picture(data: bytes) -> bool:
    """Return True for bytes that begin like an image of a kind that is read here."""
    return _kind(data) is not None


def _kind(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    return "BMP" if data.startswith(b"BM") else None


def _found(data: bytes) -> str:
    if not data:
        return "found nothing"
    if data.startswith(b"%PDF"):
        return 'found a PDF, which is a block of type "file"'
    if (kind := _other_kind(data)) is not None:
        return f"found {kind}, which is not read: save it as one of these"
    if data.lstrip()[:5].lower() in {b"<svg ", b"<?xml"}:
        return "found SVG or other XML: draw it first"
    return f"found bytes that begin with {data[:8]!r}"


def _other_kind(data: bytes) -> str | None:
    """Return the name of a kind that imaging libraries read, and that is refused here.

    TIFF has a dozen compressions, and AVIF has one frame that is decoded whole: no header limits the cost of decoding.
    """
    if data.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return "TIFF"
    if data[4:8] == b"ftyp":
        return {b"avif": "AVIF", b"avis": "AVIF"}.get(data[8:12], "HEIF or another of its family")
    return None


def _png(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR":
        return 0, 0
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _bmp(data: bytes) -> tuple[int, int]:
    (length,) = struct.unpack_from("<I", data, 14)
    width, height = struct.unpack_from("<HH" if length == 12 else "<ii", data, 18)
    return abs(width), abs(height)


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while True:
        if data[at] != 0xFF:
            return 0, 0
        marker = data[at + 1]
        if marker == 0xFF:  # filling
            at += 1
        elif marker in _STANDALONE:
            at += 2
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        else:
            (length,) = struct.unpack_from(">H", data, at + 2)
            at += 2 + max(2, length)


def _webp(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
            return (width, height) if len(data) >= 30 else (0, 0)
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
    return 0, 0


_SIZES = {"PNG": _png, "JPEG": _jpeg, "WEBP": _webp, "GIF": _gif, "BMP": _bmp}
