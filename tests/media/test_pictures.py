"""Images as pixels: upright, on white, the first frame; and what is refused."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from langchain_gemma_jax.errors import InstallationError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media import budget as budgets
from langchain_gemma_jax.media import pictures
from langchain_gemma_jax.media.budget import MediaBudget
from langchain_gemma_jax.media.picture_headers import jpeg_scans
from langchain_gemma_jax.media.pictures import read_picture, resized
from langchain_gemma_jax.stopping import Stop, StoppedError
from tests.media.samples import encoded, pixels, png, scanned_jpeg

Image = pytest.importorskip("PIL.Image")
ImageFile = pytest.importorskip("PIL.ImageFile")
AT = "messages[2].content[1]"
MOST = 50_000_000


def read(data: bytes, most: int = MOST) -> np.ndarray:
    return read_picture(data, most, AT).pixels


def written(image, kind: str = "PNG", **how: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


@pytest.mark.parametrize(
    ("kind", "how", "off"),
    [
        ("PNG", {}, 0),
        ("BMP", {}, 0),
        ("WEBP", {"lossless": True}, 0),
        ("WEBP", {"quality": 95}, 12),
        ("JPEG", {"quality": 95, "subsampling": 0}, 8),
        ("JPEG", {"quality": 95, "progressive": True, "subsampling": 0}, 8),
    ],
)
def test_the_pixels_are_those_that_were_written(kind, how, off):
    found = read(encoded(kind, **how))
    assert (found.shape, found.dtype, found.flags.writeable) == ((24, 40, 3), np.uint8, False)
    assert np.abs(found.astype(int) - pixels()).max() <= off


@pytest.mark.parametrize("orientation", range(10))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_an_image_is_upright_however_the_camera_was_held(orientation, kind):
    """A corner that is red: where it has to be seen is written in the standard."""
    array = np.zeros((16, 32, 3), np.uint8)
    array[:8, :8] = [255, 0, 0]
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = read(written(Image.fromarray(array), kind, exif=exif, quality=95))
    turned = orientation in {5, 6, 7, 8}
    assert found.shape == ((32, 16, 3) if turned else (16, 32, 3))
    corner = {2: (0, -1), 3: (-1, -1), 4: (-1, 0), 6: (0, -1), 7: (-1, -1), 8: (-1, 0)}.get(orientation, (0, 0))
    corners = {(y, x): found[y, x, 0] > 128 for y in (0, -1) for x in (0, -1)}
    assert [place for place, red in corners.items() if red] == [corner]


def test_what_is_transparent_is_seen_on_white():
    ways = []
    for alpha, expected in ((0, 255), (255, 0), (128, 127)):
        image = Image.new("RGBA", (4, 4), (0, 0, 0, alpha))
        for kind, how in (("PNG", {}), ("WEBP", {"lossless": True})):
            ways.append((written(image, kind, **how), expected))
        ways.append((written(Image.new("LA", (4, 4), (0, alpha))), expected))
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([255, 0, 0, 0, 0, 0])
    ways += [(written(palette, kind, transparency=1), 255) for kind in ("PNG", "GIF")]
    ways.append((written(Image.new("RGB", (4, 4), (9, 9, 9)), transparency=(9, 9, 9)), 255))
    for data, expected in ways:
        assert np.abs(read(data).astype(int) - expected).max() <= 1


@pytest.mark.parametrize("mode", ["1", "L", "P", "I;16", "CMYK", "LA", "RGB"])
def test_every_kind_of_color(mode):
    gray = Image.fromarray(pixels()[:, :, 0])
    if mode == "I;16":
        deep = (pixels()[:, :, 0].astype(np.uint16) << 8) + 99
        data = written(Image.fromarray(deep))
        assert (read(data)[:, :, 0] == pixels()[:, :, 0]).all(), "the upper eight of sixteen bits"
        return
    data = written(gray.convert(mode), "JPEG" if mode == "CMYK" else "PNG", quality=98)
    off = {"1": 255, "CMYK": 12}.get(mode, 1)
    assert np.abs(read(data).astype(int) - pixels()[:, :, :1]).max() <= off


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_of_what_moves(kind):
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue", "lime")]
    data = written(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True)
    assert (read(data) == [255, 0, 0]).all()


def test_a_bomb_is_refused_from_its_header():
    bomb = png(50_000, 50_000, b"x" * 800)
    assert len(bomb) < 1_000
    gif = b"GIF89a" + struct.pack("<HHBBB", 60_000, 60_000, 0, 0, 0) + b"\0" * 20
    webp = b"RIFF\x40\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + b"\xfe\x3f\0" * 2 + b"\0" * 40
    for data in (bomb, gif, webp):
        with pytest.raises(MediaLimitError, match="pixels is larger than the 50,000,000") as found:
            read(data)
        assert (found.value.at, found.value.limit) == (AT, "pixels")


def test_a_frame_larger_than_its_header_is_refused():
    data = bytearray(written(Image.new("P", (300, 300)), "GIF"))
    data[6:10] = struct.pack("<HH", 2, 2)
    with pytest.raises(MediaLimitError, match="300 x 300"):
        read(bytes(data), most=1000)


def test_pillows_own_limit_is_an_error_of_ours(monkeypatch):
    for limit in (40, 300):  # twice too many pixels are an error of Pillow's, fewer a warning
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(MediaLimitError, match="bomb"):
            read(encoded(array=pixels(20, 20)))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_what_is_truncated_is_refused(kind):
    data = encoded(kind, np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8))
    for part in (0.3, 0.6, 0.9):
        with pytest.raises(UnreadableMediaError, match=f"{kind}.*truncated") as found:
            read(data[: int(len(data) * part)])
        assert found.value.at == AT


def test_a_jpeg_goes_over_its_pixels_only_so_often(monkeypatch):
    """Each scan is as much work as the first one, however little is in it."""
    loaded, real = [], ImageFile.ImageFile.load
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: (loaded.append(self.size), real(self))[1])
    ordinary = jpeg_scans(scanned_jpeg(0, 256), AT)
    assert 2 < ordinary < 20
    for scans, as_often in ((0, ordinary), (30, ordinary + 30)):
        data = scanned_jpeg(scans, 256)
        assert jpeg_scans(data, AT) == as_often
        read(data)
    loaded.clear()
    often = pictures.MOST_SCANNED // 256**2 + 1
    for hidden in (b"", b"\xff\xfe\0\4\xff\xd9", b"\xff\2", b"\xff\xd0garbage", b"\xff\xff"):
        whole = scanned_jpeg(0, 256)
        last = whole[whole.rindex(b"\xff\xda") : -2]
        with pytest.raises(MediaLimitError) as found:
            read(whole[:-2] + (hidden + last) * often + whole[-2:])
        assert found.value.limit in {"scans", "segments"}, hidden
    with pytest.raises(MediaLimitError, match="at most 20,000 segments"):
        read(data[:2] + b"\xff\xfe\0\2" * 20_000 + data[2:])
    assert loaded == [], "nothing was decoded"
    # What stands behind a picture's end, or inside of its notes, is no scan of it.
    assert jpeg_scans(data + data, AT) == jpeg_scans(data, AT)
    assert jpeg_scans(data[:2] + b"\xff\xe1\0\6\xff\xda\xff\xda" + data[2:], AT) == jpeg_scans(data, AT)


@pytest.mark.long
def test_decoders_that_read_piece_by_piece_read_only_so_often():
    whole = encoded()
    at = whole.index(b"IDAT") - 4
    empty = struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    assert (read(whole[:at] + empty * 1_000 + whole[at:]) == pixels()).all()
    runs = b"\1\7" * 400 * 300 + b"\0\1"  # of one pixel each, which Pillow reads byte by byte
    header = struct.pack("<IiiHHIIiiII", 40, 400, 300, 1, 8, 1, len(runs), 0, 0, 256, 256)
    head = b"BM" + struct.pack("<IHHI", 54 + 1024 + len(runs), 0, 0, 54 + 1024)
    for data in (whole[:at] + empty * 100_000 + whole[at:], head + header + bytes(1024) + runs):
        with pytest.raises(MediaLimitError, match="more than 200,000 pieces") as found:
            read(data)
        assert found.value.limit == "pieces"


@pytest.mark.long
def test_pictures_are_decoded_within_the_memory_that_all_share(monkeypatch):
    """Six threads, and room for two pictures: the bytes that are held are counted whenever one is decoded."""
    side, at_work, most = 1_500, [], []
    budget = MediaBudget(2 * 7 * side * side)
    monkeypatch.setattr(budgets, "_shared", SimpleNamespace(memory=budget))
    converted, real_load, real_convert = [], ImageFile.ImageFile.load, Image.Image.convert

    def load(self):
        at_work.append(1)
        most.append((len(at_work), budget.held))
        try:
            return real_load(self)
        finally:
            at_work.pop()

    def convert(self, *args, **kwargs):
        converted.append(self.size[0] * self.size[1])
        return real_convert(self, *args, **kwargs)

    monkeypatch.setattr(ImageFile.ImageFile, "load", load)
    monkeypatch.setattr(Image.Image, "convert", convert)
    data = written(Image.new("RGBA", (side, side), (10, 20, 30, 128)))
    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(lambda _: read(data), range(6)):
            assert found.shape == (side, side, 3)
            assert (found == found[0, 0]).all()
    assert max(count for count, _ in most) <= 2
    assert max(held for _, held in most) <= budget.most
    assert budget.held == 0
    assert max(converted) <= 1 << 20, "no copy of all of it"


def test_a_picture_that_nobody_waits_for_is_not_decoded_to_its_end(monkeypatch):
    stop, reads = Stop(), []
    noise = np.random.default_rng(0).integers(0, 255, (400, 400, 3), np.uint8)
    data = written(Image.fromarray(noise))
    real = pictures._WatchedFile.read

    def read_on(self, size=-1, /):
        reads.append(size)
        if len(reads) == 9:
            stop.ask()
        return real(self, size)

    monkeypatch.setattr(pictures._WatchedFile, "read", read_on)
    with stop.over_this_work(), pytest.raises(StoppedError):
        read(data)
    assert len(reads) == 9


def test_other_sizes_are_those_of_the_pillow_that_is_installed():
    noise = np.random.default_rng(0).integers(0, 255, (120, 33, 3), np.uint8)
    for kind, how in (("bilinear", Image.Resampling.BILINEAR), ("bicubic", Image.Resampling.BICUBIC)):
        for array in (noise, noise[::-1, ::2]):
            expected = np.asarray(Image.fromarray(np.ascontiguousarray(array)).resize((48, 64), how))
            assert (resized(array, 64, 48, kind) == expected).all()
    assert resized(noise, 120, 33, "bicubic") is noise


def test_a_kind_that_is_not_read_here():
    image = Image.fromarray(pixels())
    for kind in ("TIFF", "ICO", "PPM", "TGA"):
        with pytest.raises(UnreadableMediaError, match="expected PNG, JPEG, WEBP, GIF, BMP"):
            read(written(image, kind))


def test_without_pillow_the_error_says_what_to_install(monkeypatch):
    data = encoded()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InstallationError, match=r"langchain-gemma-jax\[media\]"):
        read(data)
    with pytest.raises(InstallationError, match=r"langchain-gemma-jax\[media\]"):
        resized(pixels(), 2, 2, "bilinear")
