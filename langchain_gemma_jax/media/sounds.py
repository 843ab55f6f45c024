"""Encoded sounds as samples: WAV by the standard library, other kinds by soundfile where it is installed."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from langchain_gemma_jax.errors import InstallationError, MediaError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.budget import Lease, leased
from langchain_gemma_jax.media.medium import SAMPLE_RATE, Sound
from langchain_gemma_jax.media.resampling import Resampler
from langchain_gemma_jax.stopping import StoppedError, looking

if TYPE_CHECKING:
    import types

RATES = (1_000, 192_000)  # the least and the most of a file
MOST_CHANNELS = 32
MOST_SAMPLES = 120_000_000  # of a file, in all its channels: ten minutes of stereo at 96 kHz
_KINDS = ("WAV", "WAVEX", "FLAC", "OGG", "MP3")  # by soundfile's names
_OPEN_END = 0x7FFF_0000  # lengths from here on are placeholders: the program that wrote the file did not have it yet
_PIECE = 1 << 16  # frames
_IN_HAND = 96 << 20  # bytes that pieces and filters take at most

Frames: TypeAlias = "Iterator[NDArray[np.float32]]"
"""Pieces of a sound, one after the other: ``[frame, channel]``."""


def read_sound(data: bytes, most_s: float, at: str, lease: Lease | None = None) -> Sound:
    """Return a sound: one channel, 16,000 samples a second. It is decoded in pieces, so a high rate takes no memory.

    ``lease``: the lease for its memory, which stays open.

    Raises:
        UnreadableMediaError: it is no sound, or a broken or truncated one; MediaLimitError: it is too long, or has too
        many samples; InstallationError: soundfile, which decodes its kind, is not installed; StoppedError: the result
        is not needed any more.
    """
    if not data:
        raise UnreadableMediaError(at, "expected a sound, found nothing")
    try:
        with leased(lease) as room:
            room.need(2 * int(most_s * SAMPLE_RATE) * 4 + _IN_HAND)
            rate, frames = _wav(data, most_s, at) if data[:4] == b"RIFF" and data[8:12] == b"WAVE" else (0, None)
            if frames is None:
                rate, frames = _by_soundfile(data, most_s, at)
            return Sound(_heard(frames, rate, at))
    except (MediaError, InstallationError, StoppedError):
        raise
    except MemoryError:
        raise MediaLimitError(at, "there is no memory for the sound's samples", "seconds") from None
    except Exception as error:  # what a decoder raises for broken bytes can be anything
        raise UnreadableMediaError(at, f"the sound is broken or truncated: {str(error)[:100]}") from error


def _heard(frames: Frames, rate: int, at: str) -> NDArray[np.float32]:
    resampler = Resampler(rate, SAMPLE_RATE)
    for piece in looking(frames, 1):
        one = _one_channel(piece)
        if not np.isfinite(one).all():
            raise UnreadableMediaError(at, "the sound has samples that are no numbers")
        resampler.hear(one)
    heard = resampler.heard()
    if not len(heard):
        raise UnreadableMediaError(at, "the sound has no samples")
    np.clip(heard, -1.0, 1.0, out=heard)
    heard.setflags(write=False)
    return heard


def looks_like_sound(data: bytes) -> bool:
    """Return True for bytes that begin like a sound of a kind that is read here."""
    riff = data[:4] == b"RIFF" and data[8:12] == b"WAVE"
    return (
        riff or data.startswith((b"fLaC", b"OggS", b"ID3")) or (len(data) > 1 and data[0] == 0xFF and data[1] >= 0xE2)
    )


def _wav(data: bytes, most_s: float, at: str) -> tuple[int, Frames | None]:
    """Return the rate and the frames of a WAV file; 0 and None for a format that the module ``wave`` does not read."""
    try:
        file = wave.open(io.BytesIO(data))  # noqa: SIM115  closed below
    except wave.Error as error:
        if "unknown format" in str(error):
            return 0, None
        raise
    with file:
        channels, width, rate, frames = file.getparams()[:4]
        if not 1 <= width <= 4 or not channels:
            raise UnreadableMediaError(at, f"a WAV file of {channels} channels with {width} bytes each is not read")
        expected = frames * channels * width
        if expected >= _OPEN_END:  # written to a pipe, so its length was not known
            frames = len(data) // (channels * width)
        _check(rate, channels, frames, most_s, at)
        raw = memoryview(file.readframes(frames))
    if expected < _OPEN_END and len(raw) < expected:
        raise UnreadableMediaError(at, f"the sound is truncated: it says {expected:,} bytes and has {len(raw):,}")
    raw = raw[: len(raw) // (channels * width) * channels * width]
    step = _PIECE * channels * width
    pieces = (raw[begin : begin + step] for begin in range(0, len(raw), step))
    return rate, (_numbers(piece, width).reshape(-1, channels) for piece in pieces)


def _numbers(raw: memoryview, width: int) -> NDArray[np.float32]:
    if width == 1:
        return (np.frombuffer(raw, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(128)
    if width == 3:
        bytes_ = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        wide = np.zeros((len(bytes_), 4), np.uint8)
        wide[:, 1:] = bytes_
        return wide.view(np.dtype("<i4"))[:, 0].astype(np.float32) / np.float32(2**31)
    whole = np.frombuffer(raw, np.dtype(f"<i{width}")).astype(np.float32)
    return np.asarray(whole / np.float32(2 ** (8 * width - 1)), np.float32)


def _by_soundfile(data: bytes, most_s: float, at: str) -> tuple[int, Frames]:
    soundfile = _soundfile(data, at)
    file = soundfile.SoundFile(io.BytesIO(data))
    if file.format not in _KINDS:
        raise UnreadableMediaError(at, f"expected a sound of one of {', '.join(_KINDS)}; found {file.format}")
    _check(file.samplerate, file.channels, max(0, file.frames), most_s, at)
    return file.samplerate, _decoded(file, most_s, at)


def _decoded(file: Any, most_s: float, at: str) -> Frames:
    frames = 0
    while len(piece := file.read(_PIECE, dtype="float32", always_2d=True)):
        frames += len(piece)
        _check(file.samplerate, file.channels, frames, most_s, at)  # the header may have said less
        yield piece


def _soundfile(data: bytes, at: str) -> types.ModuleType:
    if not looks_like_sound(data):
        raise UnreadableMediaError(
            at, f"this is no sound of a kind that is read here: expected WAV, FLAC, OGG or MP3; found bytes that begin "
            f"with {data[:8]!r}",
        )  # fmt: skip
    try:
        import soundfile
    except (ImportError, OSError) as error:
        raise InstallationError(
            f"{at}: sounds that are not plain WAV are decoded by soundfile, which is not installed: pip install "
            "'langchain-gemma-jax[audio]'. Or give a WAV file of 16 bits."
        ) from error
    found: types.ModuleType = soundfile
    return found


def _check(rate: int, channels: int, frames: int, most_s: float, at: str) -> None:
    low, high = RATES
    if not low <= rate <= high:
        raise UnreadableMediaError(at, f"a sound has from {low:,} to {high:,} samples a second; this one says {rate:,}")
    if not 1 <= channels <= MOST_CHANNELS:
        raise UnreadableMediaError(at, f"a sound has from 1 to {MOST_CHANNELS} channels; this one says {channels}")
    if frames * channels > MOST_SAMPLES:
        raise MediaLimitError(
            at, f"a sound of {frames * channels:,} samples in all its channels has more than the {MOST_SAMPLES:,} that "
            f"may be. A model hears one channel of {SAMPLE_RATE:,} a second: give it so",
            "samples",
        )  # fmt: skip
    if frames > most_s * rate:
        raise MediaLimitError(
            at, f"a sound of {frames / rate:,.0f} seconds is longer than the {most_s:,.0f} that may be. Give a part of "
            "it",
            "seconds",
        )  # fmt: skip


def _one_channel(frames: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(frames[:, 0] if frames.shape[1] == 1 else frames.mean(axis=1, dtype=np.float32))
