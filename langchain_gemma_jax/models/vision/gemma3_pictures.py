"""How Gemma 3 wants its pictures: stretched to a square of one size, always as many soft tokens."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.media.pictures import Filter, resized
from langchain_gemma_jax.models.seams.media_support import PictureRules, PlacedMedium, Scan


@dataclass(frozen=True)
class SquarePictures(PictureRules):
    """Pictures of one size, with the same ids around each."""

    side: int
    soft_tokens: int
    before: tuple[int, ...]
    placeholder: int
    after: tuple[int, ...]
    filter: Filter = "bilinear"

    VERSION = b"gemma3-square-1"  # of what is done here: what was encoded of other pixels is another picture

    @property
    def most_soft_tokens(self) -> int:
        return self.soft_tokens

    def place(self, picture: Picture, max_soft_tokens: int | None) -> PlacedMedium:
        if max_soft_tokens is not None and max_soft_tokens < self.soft_tokens:
            raise InputError(
                f"max_soft_tokens: expected at least {self.soft_tokens}, which every picture of this model takes, "
                f"found {max_soft_tokens}."
            )
        pixels = resized(picture.pixels, self.side, self.side, self.filter)
        digest = hashlib.sha256(self.VERSION + repr(pixels.shape).encode() + pixels.tobytes()).digest()
        return PlacedMedium(self.before, (self.placeholder,) * self.soft_tokens, self.after, digest, {"pixels": pixels})

    def scanned(self, picture: Picture, scan: Scan) -> Sequence[tuple[str, Picture]]:
        pieces = crops(picture, scan)
        if not pieces:
            return [("", picture)]
        words = [_WHOLE, _PIECES, *[" "] * (len(pieces) - 1)]
        return list(zip(words, [picture, *pieces], strict=True))


_WHOLE, _PIECES = "Here is the original image ", " and here are some crops to help you see better "
"""What Gemma 3's processor says before a picture, and before the pieces of it: the models were trained with this."""


def crops(picture: Picture, scan: Scan) -> list[Picture]:
    """Return the pieces of a picture that lie beside each other along its longer side; none of one that is not long."""
    tall, wide = picture.pixels.shape[:2]
    longer, shorter = max(tall, wide), min(tall, wide)
    if longer / shorter < scan.min_ratio_to_activate:
        return []
    ideal = min(longer // scan.min_crop_size, math.floor(longer / shorter + 0.5))
    count = min(scan.max_num_crops, max(2, ideal))
    length = math.ceil(longer / count)
    if min(length, shorter) < scan.min_crop_size:
        return []
    along = 1 if wide >= tall else 0
    places = range(length, length * count, length)
    pieces = np.split(picture.pixels, places, axis=along)
    return [Picture(piece) for piece in pieces if piece.size]
