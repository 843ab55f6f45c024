"""Sounds as samples: one channel of 16 kHz; and what is refused."""

from __future__ import annotations

import io
import struct
import sys
import tracemalloc

import numpy as np
import pytest

from langchain_gemma_jax.errors import InstallationError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.budget import memory
from langchain_gemma_jax.media.medium import SAMPLE_RATE
from langchain_gemma_jax.media.resampling import Resampler
from langchain_gemma_jax.media.sounds import looks_like_sound, read_sound
from langchain_gemma_jax.stopping import Stop, StoppedError
from tests.media.samples import encoded, pdf, tone, wav

AT = "messages[2].content[1]"


def read(data: bytes, most_s: float = 60.0) -> np.ndarray:
    return read_sound(data, most_s, AT).samples


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_wav_files_of_every_width(width):
    sound = tone(440)
    found = read(wav(sound, width=width))
    assert (found.dtype, found.flags.writeable) == (np.float32, False)
    assert np.abs(found - sound).max() <= 2.0 ** (1 - 8 * width) + 1e-7


def test_channels_become_one_and_rates_16_khz():
    two = np.stack([tone(440, rate=48_000), tone(880, rate=48_000)], axis=1)
    found = read(wav(two, rate=48_000))
    expected = (tone(440) + tone(880)) / 2
    assert len(found) == len(expected)
    assert np.abs(found - expected)[500:-500].max() < 1e-3


def test_what_is_louder_than_it_can_be_is_cut():
    square = np.sign(tone(300, rate=44_100)) * 0.999
    assert np.abs(read(wav(square, rate=44_100))).max() <= 1.0


def test_a_sound_that_a_program_wrote_to_a_pipe_is_whole():
    data = bytearray(wav(tone(440)))
    struct.pack_into("<I", data, 4, 0xFFFFFFFF)
    struct.pack_into("<I", data, 40, 0xFFFFFFFF)
    assert np.abs(read(bytes(data)) - tone(440)).max() < 1e-4


@pytest.mark.parametrize("kind", ["FLAC", "OGG", "MP3", "WAV"])
def test_other_kinds_by_soundfile(kind):
    soundfile = pytest.importorskip("soundfile")
    out = io.BytesIO()
    soundfile.write(out, tone(440, rate=44_100), 44_100, format=kind, subtype="FLOAT" if kind == "WAV" else None)
    assert looks_like_sound(out.getvalue())
    found = read(out.getvalue())
    spectrum = np.abs(np.fft.rfft(found[:8_000]))
    assert abs(int(spectrum.argmax()) * 2 - 440) <= 4
    with pytest.raises(MediaLimitError, match="longer than"):
        read(out.getvalue(), 0.25)


def test_an_hour_is_refused_before_it_is_decoded():
    data = bytearray(wav(np.zeros(100)))
    struct.pack_into("<I", data, 24, 1000)  # samples a second
    struct.pack_into("<I", data, 40, 2 * 1000 * 3600)
    struct.pack_into("<I", data, 4, 36 + 2 * 1000 * 3600)
    with pytest.raises(MediaLimitError, match="3,600 seconds is longer than the 600") as found:
        read(bytes(data), 600.0)
    assert (found.value.at, found.value.limit) == (AT, "seconds")


def test_an_hour_of_silence_that_is_packed_is_refused():
    soundfile = pytest.importorskip("soundfile")
    out = io.BytesIO()
    soundfile.write(out, np.zeros(3600 * 1000, np.int16), 1000, format="FLAC")
    assert len(out.getvalue()) < 100_000
    with pytest.raises(MediaLimitError, match="3,600 seconds"):
        read(out.getvalue(), 600.0)


@pytest.mark.long
def test_a_sound_of_a_high_rate_takes_the_memory_of_what_is_heard():
    """A minute of silence in 192 kHz is 44 MiB as numbers, of which a few pieces are there at a time."""
    soundfile = pytest.importorskip("soundfile")
    out = io.BytesIO()
    soundfile.write(out, np.zeros(60 * 192_000, np.int16), 192_000, format="FLAC")
    for data in (out.getvalue(), wav(np.zeros(60 * 192_000), rate=192_000, width=1)):
        tracemalloc.start()
        heard = read(data)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert heard.shape == (60 * SAMPLE_RATE,)
        assert most < len(data) + 2 * heard.nbytes + (8 << 20)


def test_samples_of_all_channels_are_counted():
    data = bytearray(wav(np.zeros((10, 32)), rate=192_000))
    struct.pack_into("<I", data, 40, 2 * 32 * 192_000 * 60)
    with pytest.raises(MediaLimitError, match="368,640,000 samples in all its channels") as found:
        read(bytes(data))
    assert (found.value.at, found.value.limit) == (AT, "samples")


def test_a_sound_that_nobody_waits_for_is_not_heard_to_its_end(monkeypatch):
    stop, pieces = Stop(), []

    def hear(self, samples):
        pieces.append(len(samples))
        if len(pieces) == 2:
            stop.ask()

    monkeypatch.setattr(Resampler, "hear", hear)
    with stop.over_this_work(), pytest.raises(StoppedError):
        read(wav(np.zeros(16_000 * 30)))
    assert len(pieces) == 2
    assert memory().held == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "found nothing"),
        (b"hello", "expected WAV, FLAC, OGG or MP3"),
        (pdf(), "expected WAV"),
        (wav(tone(440))[:4000], "truncated"),
        (wav(tone(440))[:30], "broken or truncated"),
        (wav(np.zeros(0)), "no samples"),
        (wav(tone(440), rate=500), "from 1,000 to 192,000"),
        (wav(tone(440), rate=2_000_000), "from 1,000 to 192,000"),
        (wav(np.zeros((10, 40))), "from 1 to 32 channels"),
    ],
)
def test_what_is_no_sound(data, said):
    with pytest.raises(UnreadableMediaError) as found:
        read(data)
    assert said in str(found.value)
    assert found.value.at == AT


def test_an_image_is_no_sound():
    with pytest.raises(UnreadableMediaError, match="expected WAV"):
        read(encoded())


def test_without_soundfile_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(InstallationError, match=r"langchain-gemma-jax\[audio\]"):
        read(b"fLaC" + b"\0" * 50)
    assert len(read(wav(tone(440)))) == 8_000, "plain WAV files need nothing"
