"""How Gemma 3 wants its pictures: stretched to a square of one size, always as many soft tokens."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.models.vision.resize import Filter, resize
from langchain_gemma_jax.models.vision.support import PictureRules, PlacedMedium


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
        pixels = resize(picture.pixels, self.side, self.side, self.filter)
        digest = hashlib.sha256(self.VERSION + repr(pixels.shape).encode() + pixels.tobytes()).digest()
        return PlacedMedium(self.before, (self.placeholder,) * self.soft_tokens, self.after, digest, {"pixels": pixels})
