"""Encoded images as pixels, decoded and resized by Pillow."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.errors import InstallationError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.budget import Lease, leased
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.media.picture_headers import jpeg_scans, picture_header
from langchain_gemma_jax.stopping import StoppedError, check

if TYPE_CHECKING:
    from PIL import Image as PillowImage

Filter: TypeAlias = Literal["bilinear", "bicubic"]
Pixels: TypeAlias = npt.NDArray[np.uint8]

MOST_SCANNED = 1_000_000_000  # the pixels of a JPEG, times its scans
MOST_READS = 200_000  # by a decoder: some read a file byte by byte, or chunk by chunk
_ORIENTATION = 0x0112  # EXIF's
_DEEP = ("I;16", "I;16L", "I;16B", "I")  # gray of 16 bits
_STRIP = 1 << 20  # pixels that are converted at once
WHILE_RESIZED = 4  # bytes of a pixel that a copy of a picture takes


def read_picture(data: bytes, most_pixels: int, at: str, lease: Lease | None = None) -> Picture:
    """Return an image: upright, on white where it is transparent, and the first frame of an animation.

    ``lease``: the lease for its memory, which stays open. Its share is large enough to resize the image too.

    Raises:
        UnreadableMediaError: it is no image, or a broken or truncated one; MediaLimitError: it has too many pixels, or
            costs too much to decode; InstallationError: Pillow is not installed; StoppedError: the result is not needed
            any more.
    """
    header = picture_header(data, at)
    _check_pixels(header.width, header.height, most_pixels, at)
    scans = jpeg_scans(data, at) if header.kind == "JPEG" else 1
    if scans * header.width * header.height > MOST_SCANNED:
        raise MediaLimitError(
            at, f"a JPEG of {header.width:,} x {header.height:,} pixels in {scans:,} scans takes too long to decode. "
            "Save it again",
            "scans",
        )  # fmt: skip
    try:
        from PIL import Image
    except ImportError as error:
        raise InstallationError(f"{at}: {_NO_PILLOW}") from error
    try:
        with (
            Image.open(_WatchedFile(data, at), formats=[header.kind]) as image,
            leased(lease) as room,
        ):
            width, height = image.size  # a frame may be larger than the header said
            _check_pixels(width, height, most_pixels, at)
            room.need(width * height * _bytes_a_pixel(image, header.kind, is_in_scans=scans > 1))
            image.load()
            return Picture(_upright(image))
    except (MediaLimitError, StoppedError):
        raise
    except MemoryError:
        raise MediaLimitError(at, "there is no memory for the image's pixels", "pixels") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise MediaLimitError(at, f"Pillow takes the image for a bomb ({error})", "pixels") from error
    except Exception as error:  # what a decoder raises for broken bytes can be anything
        raise UnreadableMediaError(
            at, f"the image says that it is a {header.kind}, and is broken or truncated: {str(error)[:100]}"
        ) from error


def resized(pixels: Pixels, height: int, width: int, kind: Filter) -> Pixels:
    """Return a picture resized to ``[height, width, 3]``, exactly as the installed Pillow resizes it.

    Reference implementations use Pillow too, and its pixels differ between versions.

    Raises:
        InstallationError: Pillow is not installed.
    """
    if pixels.shape[:2] == (height, width):
        return pixels
    try:
        from PIL import Image
    except ImportError as error:
        raise InstallationError(_NO_PILLOW) from error
    how = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}[kind]
    return np.asarray(Image.fromarray(pixels).resize((width, height), how))


_NO_PILLOW = (
    "images are decoded and resized by Pillow, which is not installed: pip install 'langchain-gemma-jax[media]'."
)


class _WatchedFile(io.BytesIO):
    """An image's bytes for a decoder. A read raises an error if the work was stopped, or after too many reads."""

    def __init__(self, data: bytes, at: str) -> None:
        super().__init__(data)
        self._at, self._left = at, MOST_READS

    def read(self, size: int | None = -1, /) -> bytes:
        check()
        self._left -= 1
        if self._left < 0:
            raise MediaLimitError(
                self._at, f"the image has more than {MOST_READS // 1_000},000 pieces. Save it again", "pieces"
            )
        return super().read(size)


def _check_pixels(width: int, height: int, most: int, at: str) -> None:
    if width * height > most:
        raise MediaLimitError(
            at, f"an image of {width:,} x {height:,} pixels is larger than the {most:,} pixels that may be. Make it "
            "smaller: a model sees about a million of them",
            "pixels",
        )  # fmt: skip


def _bytes_a_pixel(image: PillowImage.Image, kind: str, *, is_in_scans: bool) -> int:
    """Return the most bytes that each pixel of an image takes at a time, from decoding until it is resized."""
    decoded = 1 if image.mode in {"1", "L", "P"} else 4
    is_in_scans = is_in_scans or "progressive" in image.info
    more = {"JPEG": 2 * len(image.getbands()) * is_in_scans, "WEBP": 12}.get(kind, 0)  # within the decoder
    return 3 + max(decoded + more, WHILE_RESIZED)


def _upright(image: PillowImage.Image) -> Pixels:
    """Return an image in RGB, turned upright by its EXIF orientation.

    It is converted strip by strip, so that there is never a second copy of the whole image.
    """
    turn, (width, height) = _TURNS.get(_orientation(image), np.asarray), image.size
    is_across = turn(np.empty((1, 2, 3), np.uint8)).shape[0] == 2
    found = np.empty((width, height, 3) if is_across else (height, width, 3), np.uint8)
    as_stored = turn(found)  # a view
    rows = max(1, _STRIP // width)
    for begin in range(0, height, rows):
        check()
        end = min(begin + rows, height)
        as_stored[begin:end] = np.asarray(_on_white(image.crop((0, begin, width, end))))
    found.setflags(write=False)
    return found


_TURNS: Mapping[int, Callable[[Pixels], Pixels]] = {
    2: lambda upright: upright[:, ::-1],
    3: lambda upright: upright[::-1, ::-1],
    4: lambda upright: upright[::-1],
    5: lambda upright: upright.swapaxes(0, 1),
    6: lambda upright: upright[:, ::-1].swapaxes(0, 1),
    7: lambda upright: upright[::-1, ::-1].swapaxes(0, 1),
    8: lambda upright: upright[::-1].swapaxes(0, 1),
}
"""For each orientation of EXIF, a view of upright pixels in the order of the file."""


def _orientation(image: PillowImage.Image) -> int:
    try:
        found = image.getexif().get(_ORIENTATION)
    except (MediaLimitError, StoppedError):
        raise
    except Exception:  # noqa: BLE001  broken metadata of an image that is whole
        return 1
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def _on_white(image: PillowImage.Image) -> PillowImage.Image:
    """Return an image in RGB, on white where it is transparent."""
    from PIL import Image

    if image.mode in _DEEP:
        deep = np.asarray(image).astype(np.int64)
        image = Image.fromarray((deep >> 8).clip(0, 255).astype(np.uint8))
    if image.has_transparency_data:
        seen = image.convert("RGBA")
        white = Image.new("RGBA", seen.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, seen).convert("RGB")
    return image.convert("RGB")
