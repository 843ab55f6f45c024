"""Blocks as media: what each kind becomes, what is allowed, what is read once, and what is too much of it all."""

from __future__ import annotations

import pickle
import resource

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
from tests.media.damaged import damaged
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


@pytest.mark.parametrize(
    ("count", "seed"), [(100, 0), pytest.param(2_000, 1, marks=pytest.mark.slow)], ids=["100", "2000"]
)
def test_broken_bytes_are_refused_and_take_little(count, seed):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    good = mutated(count, seed)
    assert 0 < good < count, "some changes do no harm, and most do"
    assert (memory().held, drawing().held) == (0, 0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024, "kilobytes"
