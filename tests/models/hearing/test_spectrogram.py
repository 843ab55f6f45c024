"""Loudness by pitch and time: tones are where they belong, silence is the floor, and lengths are those of frames."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.medium import SAMPLE_RATE, Sound
from langchain_gemma_jax.models.hearing.spectrogram import (
    FRAME,
    HALVED,
    HOP,
    PITCHES,
    SILENCE,
    SpectralSounds,
    spectrogram,
)

RULES = SpectralSounds((2, 8), (1,), 2, (3,))


def tone(hertz, count=SAMPLE_RATE // 10):
    return np.sin(2 * np.pi * hertz * np.arange(count) / SAMPLE_RATE).astype(np.float32)


def test_silence_is_the_floor_and_a_higher_tone_is_a_higher_pitch():
    assert spectrogram(np.zeros(800, np.float32)) == pytest.approx(np.log(SILENCE))
    loudest = [int(spectrogram(tone(hertz))[4:].mean(0).argmax()) for hertz in (200, 400, 1000, 3000, 7000)]
    assert loudest == sorted(set(loudest))
    for hertz, pitch in zip((200, 400, 1000, 3000, 7000), loudest, strict=True):
        mels = 2595 * np.log10(1 + np.array([hertz, SAMPLE_RATE / 2]) / 700)
        assert abs(pitch + 1 - mels[0] / mels[1] * (PITCHES + 1)) <= 2


@given(st.integers(1, 8 * HALVED * HOP + 2000))
def test_a_sound_has_a_soft_token_for_every_forty_milliseconds_begun_or_is_refused(count):
    sound = Sound(tone(500, count))
    frames = max(0, (count + FRAME // 2 - FRAME - 1) // HOP + 1)
    tokens = -(-frames // HALVED)
    if not 1 <= tokens <= RULES.most_soft_tokens:
        with pytest.raises(InputError, match="at most 0.32 s" if tokens else "at least 10 ms"):
            RULES.place(sound)
        return
    placed = RULES.place(sound)
    assert (placed.before, placed.placeholders, placed.after) == ((1,), (2,) * tokens, (3,))
    found, real = placed.inputs["spectrogram"], placed.inputs["real"]
    assert len(found) == len(real) == HALVED * (2 if tokens <= 2 else 8)
    assert real.tolist() == [1] * frames + [0] * (len(real) - frames)
    assert (found[:frames] == spectrogram(sound.samples)).all()
    assert not found[frames:].any()
