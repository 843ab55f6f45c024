"""How Gemma 4 wants its pictures and sounds: cut to patches within a budget of soft tokens, and to frames."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.medium import SAMPLE_RATE, Picture, Sound
from langchain_gemma_jax.media.pictures import Filter, resized
from langchain_gemma_jax.models.seams.media_support import PictureRules, PlacedMedium, SoundRules

BUDGETS = (70, 140, 280, 560, 1120)  # soft tokens that a picture may become: those that the models were trained with


@dataclass(frozen=True)
class PatchedPictures(PictureRules):
    """Pictures as patches, which are as many as their shape and the budget let be."""

    budget: int
    patch: int  # pixels of a patch's side
    pool: int  # patches of a soft token's side
    merged: bool  # whether what the encoder takes as a patch is all of a soft token
    before: tuple[int, ...]
    placeholder: int
    after: tuple[int, ...]
    filter: Filter = "bicubic"

    VERSION = b"gemma4-patches-1"  # of what is done here: what was encoded of other pixels is another picture

    @property
    def most_soft_tokens(self) -> int:
        return BUDGETS[-1]

    @property
    def soft_side(self) -> int:
        """Pixels of a soft token's side."""
        return self.patch * self.pool

    def place(self, picture: Picture, max_soft_tokens: int | None) -> PlacedMedium:
        budget = self._budget(max_soft_tokens)
        tall, wide = picture.pixels.shape[:2]
        height, width = self.size(tall, wide, budget)
        pixels = resized(picture.pixels, height, width, self.filter)
        side, each = (self.soft_side, 1) if self.merged else (self.patch, self.pool**2)
        rows, columns = height // side, width // side
        cut = pixels.reshape(rows, side, columns, side, 3).swapaxes(1, 2).reshape(rows * columns, side * side * 3)
        patches = np.zeros((budget * each, side * side * 3), np.uint8)
        places = np.full((budget * each, 2), -1, np.int32)
        patches[: len(cut)] = cut
        at = np.arange(len(cut), dtype=np.int32)
        places[: len(cut)] = np.stack([at % columns, at // columns], axis=1)
        digest = hashlib.sha256(self.VERSION + repr((pixels.shape, budget)).encode() + pixels.tobytes()).digest()
        soft = len(cut) // each
        return PlacedMedium(
            self.before, (self.placeholder,) * soft, self.after, digest, {"patches": patches, "places": places}
        )

    def size(self, height: int, width: int, budget: int) -> tuple[int, int]:
        """Return the height and the width that a picture is given: whole soft tokens, and all of the budget.

        Raises:
            InputError: it is so much longer than wide that nothing would be left of it.
        """
        side = self.soft_side
        factor = math.sqrt(budget * side * side / (height * width))
        rows, columns = int(factor * height / side), int(factor * width / side)
        if not rows and not columns:
            raise InputError(
                f"A picture of {width} by {height} pixels cannot be shown with {budget} soft tokens: nothing would "
                "be left of it. Allow more of them, or cut it to pieces."
            )
        if not rows:
            rows, columns = 1, min(width // height, budget)
        elif not columns:
            rows, columns = min(height // width, budget), 1
        return rows * side, columns * side

    def _budget(self, asked: int | None) -> int:
        if asked is None:
            return self.budget
        found = max((budget for budget in BUDGETS if budget <= asked), default=None)
        if found is None:
            raise InputError(f"max_soft_tokens: expected at least {BUDGETS[0]}, found {asked}.")
        return found


@dataclass(frozen=True)
class FramedSounds(SoundRules):
    """Sounds as frames of samples, each of which becomes a soft token."""

    frame: int  # samples
    sizes: tuple[int, ...]  # frames of the encoder's programs
    before: tuple[int, ...]
    placeholder: int
    after: tuple[int, ...]

    VERSION = b"gemma4-frames-1"

    @property
    def most_soft_tokens(self) -> int:
        return self.sizes[-1]

    def place(self, sound: Sound) -> PlacedMedium:
        count = -(-sound.samples.size // self.frame)
        size = next((size for size in self.sizes if size >= count), None)
        if size is None:
            most = self.sizes[-1] * self.frame / SAMPLE_RATE
            raise InputError(f"expected a sound of at most {most:g} s, found one of {sound.seconds:.1f} s. Cut it.")
        frames = np.zeros((size, self.frame), np.float32)
        frames.reshape(-1)[: sound.samples.size] = sound.samples
        digest = hashlib.sha256(self.VERSION + frames[:count].tobytes()).digest()
        return PlacedMedium(self.before, (self.placeholder,) * count, self.after, digest, {"frames": frames})
