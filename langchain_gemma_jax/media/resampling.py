"""Sounds at another rate: a sinc under a window, for each output that differs in phase."""

from __future__ import annotations

from functools import cache
from math import ceil, gcd

import numpy as np
from numpy.typing import NDArray

_ZEROS = 24  # zero crossings of the sinc to each side
_BETA = 9.0  # of Kaiser's window: about 90 dB between what passes and what does not
_ROLLOFF = 0.945  # the share of the lower rate's band that passes whole


def resampled(samples: NDArray[np.float32], rate: int, wanted: int) -> NDArray[np.float32]:
    """Return a sound at another rate. What it has above half of the lower rate is filtered out, never folded down."""
    if rate == wanted or not len(samples):
        return samples.astype(np.float32, copy=False)
    common = gcd(rate, wanted)
    up, down = wanted // common, rate // common
    count = ceil(len(samples) * up / down)
    cutoff = _ROLLOFF * min(1.0, wanted / rate)  # of half the input's rate
    reach = ceil(_ZEROS / cutoff)
    padded = np.concatenate([np.zeros(reach, np.float32), samples, np.zeros(reach + down + 1, np.float32)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach)
    found = np.empty(count, np.float32)
    offsets = np.arange(1 - reach, reach + 1)
    for phase in range(min(up, count)):
        first, part = divmod(phase * down, up)  # the input's sample before this output, and how far behind it
        distance = offsets - part / up
        filter_ = cutoff * np.sinc(cutoff * distance) * _window(distance / reach)
        places = windows[first + 1 :: down]
        outputs = len(found[phase::up])
        found[phase::up] = places[:outputs] @ filter_.astype(np.float32)
    return found


def _window(place: NDArray[np.float64]) -> NDArray[np.float64]:
    places, heights = _kaiser()
    return np.asarray(np.interp(np.abs(place), places, heights, right=0.0))


@cache
def _kaiser() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return half of Kaiser's window, at so many places that lines between them are as good as it."""
    places = np.linspace(0.0, 1.0, 1 << 14)
    return places, np.i0(_BETA * np.sqrt(1.0 - places * places)) / np.i0(_BETA)
