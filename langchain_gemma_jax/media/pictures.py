"""Encoded images as pixels, decoded by Pillow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from langchain_gemma_jax.errors import InstallationError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.media.picture_headers import picture_header

if TYPE_CHECKING:
    from PIL import Image as PillowImage

_ORIENTATION = 0x0112  # EXIF's
_DEEP = ("I;16", "I;16L", "I;16B", "I")  # grey of 16 bits


def read_picture(data: bytes, most_pixels: int, at: str) -> Picture:
    """Return an image: upright, on white where it is transparent, and the first frame where it moves.

    Raises:
        UnreadableMediaError: it is no image, or not all of one; MediaLimitError: it has too many pixels;
        InstallationError: Pillow is not installed.
    """
    header = picture_header(data, at)
    _check_pixels(header.width, header.height, most_pixels, at)
    try:
        from PIL import Image
    except ImportError as error:
        raise InstallationError(
            f"{at}: images are decoded by Pillow, which is not installed: pip install 'langchain-gemma-jax[media]'."
        ) from error
    try:
        with Image.open(io.BytesIO(data), formats=[header.kind]) as image:
            width, height = image.size  # a frame may be larger than the header said
            _check_pixels(width, height, most_pixels, at)
            image.load()
            pixels = np.array(_upright(_on_white(image), _orientation(image)))
    except MediaLimitError:
        raise
    except MemoryError:
        raise MediaLimitError(at, "there is no memory for the image's pixels", "pixels") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise MediaLimitError(at, f"Pillow takes the image for a bomb ({error})", "pixels") from error
    except Exception as error:  # what a decoder raises for broken bytes can be anything
        raise UnreadableMediaError(
            at, f"the image says that it is a {header.kind}, and is broken or truncated: {str(error)[:100]}"
        ) from error
    pixels.setflags(write=False)
    return Picture(pixels)


def _check_pixels(width: int, height: int, most: int, at: str) -> None:
    if width * height > most:
        raise MediaLimitError(
            at, f"an image of {width:,} x {height:,} pixels is larger than the {most:,} pixels that may be. Make it "
            "smaller: a model sees about a million of them",
            "pixels",
        )  # fmt: skip


def _on_white(image: PillowImage.Image) -> PillowImage.Image:
    """Return an image in red, green and blue. Where it is transparent, it is seen on white."""
    from PIL import Image

    if image.mode in _DEEP:
        deep = np.asarray(image).astype(np.int64)
        image = Image.fromarray((deep >> 8).clip(0, 255).astype(np.uint8))
    if image.has_transparency_data:
        seen = image.convert("RGBA")
        white = Image.new("RGBA", seen.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, seen).convert("RGB")
    return image.convert("RGB")


def _orientation(image: PillowImage.Image) -> int:
    try:
        found = image.getexif().get(_ORIENTATION)
    except Exception:  # noqa: BLE001  broken notes beside an image that is whole
        return 1
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def _upright(image: PillowImage.Image, orientation: int) -> PillowImage.Image:
    """Return an image as it was meant to be seen, by the way in which the camera was held."""
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image if orientation not in turns else image.transpose(turns[orientation])
