"""Whole images, sounds and documents, damaged in ways that are drawn at random."""

from __future__ import annotations

import io
from functools import cache

import numpy as np

from langchain_gemma_jax.media.block_forms import MediaKind
from tests.media.samples import encoded, pdf, pixels, tone, wav


def damaged(number: int, seed: int = 0) -> tuple[MediaKind, bytes]:
    """One of very many broken files, and what it is said to be."""
    whole = _whole(seed)
    kind, data = whole[number % len(whole)]
    return kind, _broken(data, number % 5, np.random.default_rng((seed, number)))


@cache
def _whole(seed: int) -> list[tuple[MediaKind, bytes]]:
    noise = np.random.default_rng(seed).integers(0, 255, (48, 64, 3), np.uint8)
    kinds = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
    whole: list[tuple[MediaKind, bytes]] = [
        ("image", encoded(kind, each)) for kind in kinds for each in (noise, pixels(30, 50))
    ]
    whole += [("audio", wav(tone(440, 0.1), width=width)) for width in (1, 2, 3, 4)]
    if _there("soundfile"):
        whole += [("audio", _packed(kind)) for kind in ("FLAC", "OGG", "MP3")]
    if _there("pypdfium2"):
        whole.append(("file", pdf(2, 40)))
    return whole


def _broken(data: bytes, how: int, random: np.random.Generator) -> bytes:
    broken = bytearray(data)
    at, to = (int(place) for place in random.integers(0, len(broken), 2))
    match how:
        case 0:
            del broken[at:]
        case 1:  # headers, where sizes are
            for place in random.integers(0, min(len(broken), 64), 3):
                broken[place] = int(random.integers(256))
        case 2:
            for place in random.integers(0, len(broken), 1 + len(broken) // 200):
                broken[place] ^= 1 << int(random.integers(8))
        case 3:
            broken[at : at + 4] = b"\xff\xff\xff\xff"
        case 4:
            broken[at:at] = broken[to : to + 40]
    return bytes(broken)


def _there(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def _packed(kind: str) -> bytes:
    import soundfile

    out = io.BytesIO()
    soundfile.write(out, tone(440, 0.2, 22_050), 22_050, format=kind)
    return out.getvalue()
