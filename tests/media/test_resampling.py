"""Sounds at another rate: what can be heard stays, what cannot is gone."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.media.resampling import Resampler, resampled
from tests.media.samples import tone

RATES = [8_000, 11_025, 12_345, 22_050, 24_000, 44_100, 44_101, 48_000, 96_000, 192_000]


@pytest.mark.parametrize("rate", RATES)
def test_tones_stay_what_they_are(rate):
    for hertz in (100, 1_000, 3_000):
        found = resampled(tone(hertz, 0.25, rate).astype(np.float32), rate, 16_000)
        expected = tone(hertz, 0.25)
        assert abs(len(found) - len(expected)) <= 1
        middle = slice(800, 3_000)  # at its ends a sound begins and stops
        assert np.abs(found[middle] - expected[middle]).max() < 2e-4, hertz


@pytest.mark.parametrize("rate", [rate for rate in RATES if rate > 22_000])
def test_what_is_too_high_is_not_folded_down(rate):
    for hertz in (8_600, 9_700, rate / 2 - 50):
        found = resampled(tone(hertz, 0.25, rate).astype(np.float32), rate, 16_000)
        assert np.abs(found[800:3_000]).max() < 1e-3, hertz


@pytest.mark.long
def test_a_steady_level_and_silence_stay():
    for rate in RATES:
        level = resampled(np.full(rate // 4, 0.25, np.float32), rate, 16_000)
        assert np.abs(level[800:3_000] - 0.25).max() < 1e-4
        assert not resampled(np.zeros(rate // 4, np.float32), rate, 16_000).any()
    for length in range(4):
        assert len(resampled(np.ones(length, np.float32), 48_000, 16_000)) == -(-length // 3)


def test_the_same_rate_is_the_same_sound():
    sound = tone(440).astype(np.float32)
    assert resampled(sound, 16_000, 16_000) is sound


def test_in_whichever_pieces_a_sound_comes_it_is_the_same():
    numbers = np.random.default_rng(2)
    for rate in (8_000, 44_100, 48_000, 192_000):
        sound = numbers.normal(size=rate // 3).astype(np.float32)
        whole = resampled(sound, rate, 16_000)
        assert len(whole) == -(-len(sound) * 16_000 // rate)
        for most in (1, 700, 20_000):
            resampler, begin = Resampler(rate, 16_000), 0
            while begin < len(sound):
                end = begin + (int(numbers.integers(0, most)) if most > 1 else 5_000)
                resampler.hear(sound[begin:end])
                begin = end
            np.testing.assert_allclose(resampler.heard(), whole, atol=1e-5)
