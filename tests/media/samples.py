"""Images, sounds and documents to read, made up here."""

from __future__ import annotations

import base64
import io
import struct
import wave
import zlib

import numpy as np
import pytest


def pixels(height: int = 24, width: int = 40, seed: int = 0) -> np.ndarray:
    """A soft pattern, which no codec changes much."""
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    waves = [np.sin(3 * x + seed), np.cos(4 * y + seed), np.sin(2 * (x + y) + seed)]
    return np.stack([(127 + 100 * each).astype(np.uint8) for each in waves], axis=2)


def encoded(kind: str = "PNG", array: np.ndarray | None = None, **how: object) -> bytes:
    """An image as Pillow writes it."""
    image = pytest.importorskip("PIL.Image").fromarray(pixels() if array is None else array)
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def png(width: int = 2, height: int = 2, data: bytes | None = None) -> bytes:
    """A PNG without Pillow, of any size that it says: red, or with these bytes as its pixels' stream."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    stream = zlib.compress((b"\0" + b"\xff\0\0" * width) * height) if data is None else data
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", stream) + chunk(b"IEND", b"")


def scanned_jpeg(scans: int, side: int = 64) -> bytes:
    """A progressive JPEG of one color with so many more scans, in which there is nothing."""
    whole = encoded("JPEG", np.full((side, side), 128, np.uint8), progressive=True)
    last = whole[whole.rindex(b"\xff\xda") : -2]
    return whole[:-2] + last * scans + whole[-2:]


def wav(samples: np.ndarray, rate: int = 16_000, width: int = 2) -> bytes:
    """A WAV file of samples from -1 to 1, [sample] or [sample, channel]."""
    scaled = np.round(np.clip(samples, -1, 1 - 2.0 ** (1 - 8 * width)) * 2.0 ** (8 * width - 1)).astype(np.int64)
    raw = {
        1: lambda: (scaled + 128).astype(np.uint8).tobytes(),
        2: lambda: scaled.astype("<i2").tobytes(),
        3: lambda: scaled.astype("<i4").reshape(-1, 1).view(np.uint8)[:, :3].tobytes(),  # noqa: PLW0108
        4: lambda: scaled.astype("<i4").tobytes(),
    }[width]()
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1 if samples.ndim == 1 else samples.shape[1], width, rate, 0, "NONE", "NONE"))
        file.writeframes(raw)
    return out.getvalue()


def tone(hertz: float, seconds: float = 0.5, rate: int = 16_000, loud: float = 0.5) -> np.ndarray:
    return loud * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)


def pdf(pages: int = 1, side: int = 200) -> bytes:
    """A PDF of empty pages with a black square on each."""
    draw = b"0 0 0 rg 20 20 60 60 re f"
    kids = " ".join(f"{3 + 2 * n} 0 R" for n in range(pages))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Count {pages}/Kids[{kids}]>>".encode()]
    for number in range(pages):
        page = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 {side} {side}]/Contents {4 + 2 * number} 0 R>>"
        objects += [page.encode(), _stream(draw)]
    return _pdf_of(objects)


def nested_pdf(width: int, depth: int) -> bytes:
    """A small PDF that fills its page ``width ** depth`` times: forms that show so many times the next form."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[3 0 R]>>"]
    objects.append(
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>>>>>"
    )
    objects.append(_stream(b"/X Do"))
    for number in range(6, 6 + depth):
        inner = b"/Type/XObject/Subtype/Form/BBox[0 0 200 200]/Resources<</XObject<</X %d 0 R>>>>" % number
        objects.append(_stream(b"/X Do " * width, inner))
    objects.append(_stream(b"0 0 0 rg 20 20 160 160 re f", b"/Type/XObject/Subtype/Form/BBox[0 0 200 200]"))
    return _pdf_of(objects)


def _stream(content: bytes, more: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (more, len(content), content)


def _pdf_of(objects: list[bytes]) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + table + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()
