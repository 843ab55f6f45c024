"""Encoded sounds as samples: WAV by the standard library, other kinds by soundfile where it is installed."""

from __future__ import annotations

import io
import wave
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from langchain_gemma_jax.errors import InstallationError, MediaError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.medium import SAMPLE_RATE, Sound
from langchain_gemma_jax.media.resampling import resampled

if TYPE_CHECKING:
    import types

RATES = (1_000, 192_000)  # what a sound's own may be
MOST_CHANNELS = 32
_KINDS = ("WAV", "WAVEX", "FLAC", "OGG", "MP3")  # by soundfile's names
_OPEN_END = 0x7FFF_0000  # a length that stands where a program did not know it yet
_PIECE = 1 << 16  # frames


def read_sound(data: bytes, most_s: float, at: str) -> Sound:
    """Return a sound: one channel, 16,000 samples a second.

    Raises:
        UnreadableMediaError: it is no sound, or not all of one; MediaLimitError: it is too long;
        InstallationError: it is of a kind that soundfile decodes, which is not installed.
    """
    if not data:
        raise UnreadableMediaError(at, "expected a sound, found nothing")
    try:
        found = _wav(data, most_s, at) if data[:4] == b"RIFF" and data[8:12] == b"WAVE" else None
        samples, rate = _by_soundfile(data, most_s, at) if found is None else found
    except (MediaError, InstallationError):
        raise
    except MemoryError:
        raise MediaLimitError(at, "there is no memory for the sound's samples", "seconds") from None
    except Exception as error:  # what a decoder raises for broken bytes can be anything
        raise UnreadableMediaError(at, f"the sound is broken or truncated: {str(error)[:100]}") from error
    if not len(samples):
        raise UnreadableMediaError(at, "the sound has no samples")
    if not np.isfinite(samples).all():
        raise UnreadableMediaError(at, "the sound has samples that are no numbers")
    heard = np.clip(resampled(samples, rate, SAMPLE_RATE), -1.0, 1.0)
    heard.setflags(write=False)
    return Sound(heard)


def looks_like_sound(data: bytes) -> bool:
    """Whether some bytes begin as a sound does."""
    riff = data[:4] == b"RIFF" and data[8:12] == b"WAVE"
    return (
        riff or data.startswith((b"fLaC", b"OggS", b"ID3")) or (len(data) > 1 and data[0] == 0xFF and data[1] >= 0xE2)
    )


def _wav(data: bytes, most_s: float, at: str) -> tuple[NDArray[np.float32], int] | None:
    """Return the samples of a WAV file, in one channel, and their rate; None if it is one of a rarer kind."""
    try:
        file = wave.open(io.BytesIO(data))  # noqa: SIM115  closed below
    except wave.Error as error:
        if "unknown format" in str(error):
            return None
        raise
    with file:
        channels, width, rate, frames = file.getparams()[:4]
        if not 1 <= width <= 4 or not channels:
            raise UnreadableMediaError(at, f"a WAV file of {channels} channels with {width} bytes each is not read")
        told = frames * channels * width
        if told >= _OPEN_END:  # written to a pipe, so its length was not known
            frames = len(data) // (channels * width)
        _check(rate, channels, frames, most_s, at)
        raw = file.readframes(frames)
    if told < _OPEN_END and len(raw) < told:
        raise UnreadableMediaError(at, f"the sound is truncated: it says {told:,} bytes and has {len(raw):,}")
    raw = raw[: len(raw) // (channels * width) * channels * width]
    return _one_channel(_numbers(raw, width).reshape(-1, channels)), rate


def _numbers(raw: bytes, width: int) -> NDArray[np.float32]:
    if width == 1:
        return (np.frombuffer(raw, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(128)
    if width == 3:
        bytes_ = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        wide = np.zeros((len(bytes_), 4), np.uint8)
        wide[:, 1:] = bytes_
        return wide.view(np.dtype("<i4"))[:, 0].astype(np.float32) / np.float32(2**31)
    whole = np.frombuffer(raw, np.dtype(f"<i{width}")).astype(np.float32)
    return np.asarray(whole / np.float32(2 ** (8 * width - 1)), np.float32)


def _by_soundfile(data: bytes, most_s: float, at: str) -> tuple[NDArray[np.float32], int]:
    soundfile = _soundfile(data, at)
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        if file.format not in _KINDS:
            raise UnreadableMediaError(at, f"expected a sound of one of {', '.join(_KINDS)}; found {file.format}")
        rate, channels = file.samplerate, file.channels
        _check(rate, channels, max(0, file.frames), most_s, at)
        pieces: list[NDArray[np.float32]] = []
        frames = 0
        while len(piece := file.read(_PIECE, dtype="float32", always_2d=True)):
            frames += len(piece)
            _check(rate, channels, frames, most_s, at)  # whatever it said of itself
            pieces.append(_one_channel(piece))
    return np.concatenate(pieces) if pieces else np.zeros(0, np.float32), rate


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
    if frames > most_s * rate:
        raise MediaLimitError(
            at, f"a sound of {frames / rate:,.0f} seconds is longer than the {most_s:,.0f} that may be. Give a part of "
            "it",
            "seconds",
        )  # fmt: skip


def _one_channel(frames: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(frames[:, 0] if frames.shape[1] == 1 else frames.mean(axis=1, dtype=np.float32))
