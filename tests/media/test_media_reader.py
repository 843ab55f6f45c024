"""Blocks as media: what each kind becomes, what is allowed, what is read once, and what is too much of it all."""

from __future__ import annotations

import io
import pickle
import resource
from functools import cache

import numpy as np
import pytest

from langchain_gemma_jax.errors import (
    InstallationError,
    MediaAccessError,
    MediaError,
    MediaLimitError,
    UnreadableMediaError,
)
from langchain_gemma_jax.media.block_forms import media_block
from langchain_gemma_jax.media.budget import drawing, memory
from langchain_gemma_jax.media.media_reader import MediaAccess, MediaLimits, MediaReader
from langchain_gemma_jax.media.medium import Picture, Sound
from tests.media.samples import base64_of, encoded, pdf, pixels, tone, wav

pytest.importorskip("PIL")
AT = "messages[1].content[2]"
READER = MediaReader()


def block(data: bytes, kind: str = "image", **more: object):
    return media_block({"type": kind, "base64": base64_of(data), **more}, AT)


def test_a_file_is_what_its_bytes_are():
    picture, sound = encoded(), wav(tone(440))
    assert isinstance(READER.read(block(picture))[0], Picture)
    assert isinstance(READER.read(block(picture, "file", mime_type="application/pdf"))[0], Picture)
    assert isinstance(READER.read(block(sound, "audio"))[0], Sound)
    assert isinstance(READER.read(block(sound, "file"))[0], Sound)
    for data, kind in ((sound, "image"), (picture, "audio"), (b"words", "file"), (b"", "image")):
        with pytest.raises(UnreadableMediaError) as found:
            READER.read(block(data, kind))
        assert found.value.at == AT


def test_a_document_is_its_pages():
    pytest.importorskip("pypdfium2")
    assert len(READER.read(block(pdf(3), "file"))) == 3
    with pytest.raises(MediaLimitError):
        MediaReader(limits=MediaLimits(pages=2)).read(block(pdf(3), "file"))


def test_nothing_but_a_blocks_own_bytes_is_read_unless_it_is_allowed(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(encoded())
    by_path = media_block({"type": "image", "path": str(path)}, AT)
    by_link = media_block({"type": "image", "url": "http://127.0.0.1:9/a.png"}, AT)
    with pytest.raises(MediaAccessError, match="media_folders"):
        READER.read(by_path)
    with pytest.raises(MediaAccessError, match="allow_urls"):
        READER.read(by_link)
    allowed = MediaReader(MediaAccess((str(tmp_path),), links=True))
    assert (allowed.read(by_path)[0].pixels == pixels()).all()
    with pytest.raises(MediaAccessError, match="no address of the public"):
        allowed.read(by_link)


def test_what_was_read_is_remembered_by_what_it_is(tmp_path):
    known, asked = {}, []

    def remembered(digest, read):
        asked.append(digest)
        return known.setdefault(digest, None) or known.__setitem__(digest, read()) or known[digest]

    one, path = block(encoded()), tmp_path / "a.png"
    (first,), (again,) = READER.read(one, remembered), READER.read(block(encoded()), remembered)
    assert first is again
    path.write_bytes(encoded())
    allowed = MediaReader(MediaAccess((str(tmp_path),)))
    by_path = media_block({"type": "image", "path": str(path)}, AT)
    (first,), (again,) = allowed.read(by_path, remembered), allowed.read(by_path, remembered)
    assert first is again
    path.write_bytes(encoded(array=pixels(9, 9)))
    assert allowed.read(by_path, remembered)[0].pixels.shape == (9, 9, 3), "the file has changed"
    assert len(set(asked)) == 3
    with pytest.raises(MediaAccessError):
        READER.read(by_path, remembered)  # also where it is remembered


def test_a_conversation_has_only_so_many():
    reader = MediaReader(limits=MediaLimits(media=3, total_pixels=2_000))
    one = (block(encoded()), (Picture(pixels(20, 20)),))
    sound = (block(b"", "audio"), (Sound(np.zeros(9_000, np.float32)),) * 2)
    tally = reader.tally()
    tally.add(*one)
    tally.add(*sound)
    with pytest.raises(MediaLimitError, match="more than the 3 ") as found:
        tally.add(*one)
    assert (found.value.at, found.value.limit) == (AT, "media")
    tally = reader.tally()
    tally.add(*one)
    with pytest.raises(MediaLimitError, match="2,000 pixels"):
        tally.add(one[0], (Picture(pixels(50, 40)),))


def test_errors_are_the_same_in_another_process():
    for kind in (MediaError, UnreadableMediaError, MediaLimitError, MediaAccessError):
        error = kind(AT, "too much", "bytes")
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.at, again.problem, again.limit) == (kind, AT, "too much", "bytes")
        assert str(again) == f"{AT}: too much."


def mutated(count: int, seed: int) -> int:
    """Read so many broken images, sounds and documents. Returns how many were whole all the same."""
    reader = MediaReader(limits=MediaLimits(pixels=1_000_000, sound_s=30.0, pages=4))
    good = 0
    for number in range(count):
        kind, data = damaged(number, seed)
        try:
            good += len(reader.read(block(data, kind))) > 0
        except (MediaError, InstallationError):
            continue
    return good


def damaged(number: int, seed: int = 0) -> tuple[str, bytes]:
    """One of very many broken files, and what it is said to be."""
    whole = _whole(seed)
    kind, data = whole[number % len(whole)]
    return kind, _broken(data, number % 5, np.random.default_rng((seed, number)))


@cache
def _whole(seed: int) -> list[tuple[str, bytes]]:
    noise = np.random.default_rng(seed).integers(0, 255, (48, 64, 3), np.uint8)
    kinds = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
    whole = [("image", encoded(kind, each)) for kind in kinds for each in (noise, pixels(30, 50))]
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


@pytest.mark.parametrize(
    ("count", "seed"), [(100, 0), pytest.param(2_000, 1, marks=pytest.mark.slow)], ids=["100", "2000"]
)
def test_broken_bytes_are_refused_and_take_little(count, seed):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    good = mutated(count, seed)
    assert 0 < good < count, "some changes do no harm, and most do"
    assert (memory().held, drawing().held) == (0, 0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024, "kilobytes"
