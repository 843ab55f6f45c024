"""The input of Gemma 4's audio encoder: the logarithm of the loudness of each pitch, every ten milliseconds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.medium import SAMPLE_RATE, Sound
from langchain_gemma_jax.models.seams.media_support import PlacedMedium, SoundRules

PITCHES = 128
FRAME, HOP, SPECTRUM = 320, 160, 512  # samples of a frame, between two frames, and of a frame with padding
SILENCE = 1e-3  # added before the logarithm
HALVED = 4  # frames of a soft token: the encoder halves their number twice

Floats = npt.NDArray[np.float32]


def spectrogram(samples: Floats) -> Floats:
    """Return ``[frame, pitch]`` of a sound. Half a frame of silence is put first; an incomplete frame is dropped."""
    padded = np.pad(samples.astype(np.float64), (FRAME // 2, 0))
    count = max(0, (len(padded) - FRAME - 1) // HOP + 1)
    at = np.arange(count)[:, None] * HOP + np.arange(FRAME)[None, :]
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)).astype(np.float32)
    loudness = np.abs(np.fft.rfft(padded[at] * window, n=SPECTRUM, axis=-1))
    return np.log(loudness @ _pitches() + SILENCE).astype(np.float32)


@cache
def _pitches() -> npt.NDArray[np.float64]:
    """Return the weight of each frequency in each pitch: triangles of equal width on the mel scale."""
    highest = 2595.0 * np.log10(1.0 + SAMPLE_RATE / 2 / 700.0)
    corners = 700.0 * (10.0 ** (np.linspace(0.0, highest, PITCHES + 2) / 2595.0) - 1.0)
    apart = corners[None, :] - np.linspace(0, SAMPLE_RATE // 2, SPECTRUM // 2 + 1)[:, None]
    widths = np.diff(corners)
    falling, rising = -apart[:, :-2] / widths[:-1], apart[:, 2:] / widths[1:]
    return np.maximum(0.0, np.minimum(falling, rising))


@dataclass(frozen=True)
class SpectralSounds(SoundRules):
    """Sounds as spectrograms, with a soft token for every forty milliseconds."""

    sizes: tuple[int, ...]  # soft tokens of the encoder's programs
    before: tuple[int, ...]
    placeholder: int
    after: tuple[int, ...]

    VERSION = b"gemma4-spectrogram-1"  # of this preparation, as a part of digests

    @property
    def most_soft_tokens(self) -> int:
        return self.sizes[-1]

    def place(self, sound: Sound) -> PlacedMedium:
        frames = spectrogram(sound.samples)
        count = -(-len(frames) // HALVED)
        if not count:
            raise InputError(f"expected a sound of at least 10 ms, found one of {1000 * sound.seconds:.1f} ms.")
        size = next((size for size in self.sizes if size >= count), None)
        if size is None:
            most = self.sizes[-1] * HALVED * HOP / SAMPLE_RATE
            raise InputError(f"expected a sound of at most {most:g} s, found one of {sound.seconds:.1f} s. Cut it.")
        padded = np.zeros((size * HALVED, PITCHES), np.float32)
        padded[: len(frames)] = frames
        real = np.zeros(size * HALVED, np.int32)
        real[: len(frames)] = 1
        digest = hashlib.sha256(self.VERSION + sound.digest).digest()
        return PlacedMedium(
            self.before, (self.placeholder,) * count, self.after, digest, {"spectrogram": padded, "real": real}
        )
