"""Pictures and sounds, decoded: plain arrays with a digest of their content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

SAMPLE_RATE = 16_000  # samples a second of every ``Sound``


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture, upright and without transparency."""

    pixels: npt.NDArray[np.uint8]  # [height, width, 3]: red, green, blue

    def __post_init__(self) -> None:
        shape = self.pixels.shape
        if self.pixels.dtype != np.uint8 or len(shape) != 3 or shape[2] != 3 or 0 in shape:
            raise ValueError(f"expected uint8 pixels [height, width, 3], found {self.pixels.dtype} {shape}")

    @cached_property
    def digest(self) -> bytes:
        """A hash of the size and the pixels, which identifies the picture."""
        return _digest(b"picture", self.pixels)


@dataclass(frozen=True, eq=False)
class Sound:
    """A sound: one channel of 16,000 samples a second."""

    samples: npt.NDArray[np.float32]  # [sample], from -1 to 1

    def __post_init__(self) -> None:
        if self.samples.dtype != np.float32 or self.samples.ndim != 1 or not self.samples.size:
            found = f"{self.samples.dtype} {self.samples.shape}"
            raise ValueError(f"expected float32 samples [sample], found {found}")

    @property
    def seconds(self) -> float:
        """The length of the sound, in seconds."""
        return self.samples.size / SAMPLE_RATE

    @cached_property
    def digest(self) -> bytes:
        """A hash of the samples, which identifies the sound."""
        return _digest(b"sound", self.samples)


Medium: TypeAlias = Picture | Sound


def _digest(kind: bytes, array: npt.NDArray[np.generic]) -> bytes:
    return hashlib.sha256(kind + repr(array.shape).encode() + np.ascontiguousarray(array).tobytes()).digest()
