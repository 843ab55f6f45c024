"""Sounds at another rate, by a windowed sinc: one filter for each phase of the outputs.

A sound comes in pieces, a few of which are in memory at a time. Phases repeat after a period, a fixed number of inputs
and outputs. So a period's outputs are one product: the inputs around them, times a matrix of filters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from math import ceil, gcd

import numpy as np
from numpy.typing import NDArray

_ZEROS = 24  # zero crossings of the sinc to each side
_BETA = 9.0  # of the Kaiser window: about 90 dB of attenuation
_ROLLOFF = 0.945  # the share of the lower rate's band that passes whole
_OUTPUTS = 32  # of a product: filters begin at different inputs, so a matrix of more filters is mostly zeros
_AT_ONCE = 1 << 16  # inputs
_SMALL = 1 << 18  # multiplications of a product: libraries divide larger ones among threads, which then spin


def resampled(samples: NDArray[np.float32], rate: int, wanted: int) -> NDArray[np.float32]:
    """Return a sound at another rate. Frequencies above half of the lower rate are filtered out, so none is aliased."""
    if rate == wanted:
        return samples.astype(np.float32, copy=False)
    resampler = Resampler(rate, wanted)
    for begin in range(0, len(samples), _AT_ONCE):
        resampler.hear(samples[begin : begin + _AT_ONCE])
    return resampler.heard()


@dataclass
class Resampler:
    """A sound at another rate, made piece by piece. It keeps its outputs, and the inputs around the next output."""

    rate: int
    wanted: int
    _found: list[NDArray[np.float32]] = field(default_factory=list)
    _count: int = 0  # inputs so far

    def __post_init__(self) -> None:
        if self.rate == self.wanted:
            return
        common = gcd(self.rate, self.wanted)
        times = ceil(_OUTPUTS * common / self.wanted)
        self._outputs, self._inputs = self.wanted // common * times, self.rate // common * times  # of a period
        self._cutoff = _ROLLOFF * min(1.0, self.wanted / self.rate)  # of half the input's rate
        self._reach = ceil(_ZEROS / self._cutoff)
        self._filters = list(self._made_filters())
        self._left = np.zeros(self._reach - 1, np.float32)  # from the first input that the next period needs

    def hear(self, samples: NDArray[np.float32]) -> None:
        """Take the next piece of the sound."""
        self._count += len(samples)
        if self.rate == self.wanted:
            self._found.append(samples.astype(np.float32))
        else:
            self._left = np.concatenate([self._left, samples])
            self._resample((len(self._left) - 2 * self._reach) // self._inputs)

    def heard(self) -> NDArray[np.float32]:
        """End the sound, and return all of it."""
        if self.rate != self.wanted:
            outputs = ceil(self._count * self.wanted / self.rate)
            left = outputs - sum(map(len, self._found))
            periods = ceil(left / self._outputs)
            silence = periods * self._inputs + 2 * self._reach - len(self._left)
            self._left = np.concatenate([self._left, np.zeros(max(0, silence), np.float32)])
            self._resample(periods)
            if self._found:
                self._found[-1] = self._found[-1][: len(self._found[-1]) + outputs - sum(map(len, self._found))]
        return np.concatenate(self._found) if self._found else np.zeros(0, np.float32)

    def _resample(self, periods: int) -> None:
        if periods < 1:
            return
        found = np.empty((periods, self._outputs), np.float32)
        for begin in range(0, self._outputs, _OUTPUTS):
            first, filters = self._filters[begin // _OUTPUTS]
            around = np.lib.stride_tricks.sliding_window_view(self._left[first:], len(filters))[:: self._inputs]
            around, rows = np.ascontiguousarray(around[:periods]), max(1, _SMALL // filters.size)
            for row in range(0, periods, rows):
                outputs = found[row : row + rows, begin : begin + _OUTPUTS]
                np.matmul(around[row : row + rows], filters, out=outputs)
        self._left = self._left[periods * self._inputs :].copy()
        self._found.append(found.reshape(-1))

    def _made_filters(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the first input and the filters, ``[input, output]``, of each group of outputs of a period."""
        for begin in range(0, self._outputs, _OUTPUTS):
            outputs = np.arange(begin, min(begin + _OUTPUTS, self._outputs))
            middles, rests = np.divmod(outputs * self._inputs, self._outputs)
            length = int(middles[-1] - middles[0]) + 2 * self._reach
            # The distance of each input from the last input before an output, and from the output itself.
            offset = np.arange(1 - self._reach, length + 1 - self._reach)[:, None] + middles[0] - middles
            distance = offset - rests / self._outputs
            weights = self._cutoff * np.sinc(self._cutoff * distance) * _window(distance / self._reach)
            weights[(offset <= -self._reach) | (offset > self._reach)] = 0.0
            yield int(middles[0]), weights.astype(np.float32)


def _window(place: NDArray[np.float64]) -> NDArray[np.float64]:
    places, heights = _kaiser()
    return np.asarray(np.interp(np.abs(place), places, heights, right=0.0))


@cache
def _kaiser() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return half of a Kaiser window, at enough places for linear interpolation between them."""
    places = np.linspace(0.0, 1.0, 1 << 14)
    return places, np.i0(_BETA * np.sqrt(1.0 - places * places)) / np.i0(_BETA)
