"""A prefix file is what was written, or it is nothing: no flip, no cut and no swap goes unseen."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random

import ml_dtypes
import numpy as np
import pytest

from langchain_gemma_jax.engine.prefix_store.prefix_file import MAGIC, header_bytes, packed, read_header
from langchain_gemma_jax.engine.prefix_store.prefix_names import PrefixNames
from langchain_gemma_jax.engine.prefix_store.sealing import Digests
from langchain_gemma_jax.private.folder import DamagedError
from tests.engine.prefix_store.example_prefixes import (
    FAMILY,
    blocks_of,
    found_right,
    header_of,
    keys_of,
    put,
    store_in,
)
from tests.engine.prefix_store.test_sealing import encrypted


def flipped(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    found[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(found)


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def grown(data: bytes, rng: random.Random) -> bytes:
    return data + rng.randbytes(rng.randint(1, 20))


def shifted(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(1) + data[at:]


def swapped(data: bytes, rng: random.Random) -> bytes:
    """Two blocks of one shape in each other's place."""
    size = 2 * 3 * 8 * 4
    one = len(data) - 4 * size
    return data[:one] + data[one + size : one + 2 * size] + data[one : one + size] + data[one + 2 * size :]


def zeroed(data: bytes, rng: random.Random) -> bytes:
    """Return the pages as a power cut leaves them that never reached the disk."""
    at = rng.randrange(len(data) - 64)
    return data[:at] + bytes(64) + data[at + 64 :]


@pytest.mark.long
@pytest.mark.parametrize("sealed", ["digests", "encrypted"])
def test_a_thousand_damaged_files_are_rejected_and_healed_by_deletion(tmp_path, sealed):
    sealing = Digests() if sealed == "digests" else encrypted()
    folder, rng = tmp_path / "prefixes", random.Random(7)
    name = put(store_in(folder, sealing=sealing), 1)
    good = (folder / name).read_bytes()
    damages = [flipped, cut, grown, shifted, zeroed] + [swapped] * (sealed == "digests")
    rejected, unread = 0, 2 * (2 * 3 * 8 * 4 + sealing.growth)  # bytes of the rings at 3 tokens
    for number in range(1000):
        bad = damages[number % len(damages)](good, rng)
        if bad == good:
            continue
        (folder / name).write_bytes(bad)
        stored = store_in(folder, sealing=sealing)
        if found_right(stored, 1):  # a part that this beginning does not need was damaged
            assert stored._folder.counts.prefixes_rejected == 0
            assert bad[:-unread] == good[:-unread]
            everything = stored.read(stored.find("somebody", keys_of(1)[:4], 0))
            assert everything is None
        assert stored._folder.counts.prefixes_rejected == 1
        assert not (folder / name).exists()
        rejected += 1
        assert put(stored, 1) == name
        assert found_right(stored, 1)
    assert rejected > 990


def test_what_is_no_header_is_refused_whatever_it_is():
    names, rng = PrefixNames(FAMILY), random.Random(3)
    blocks = blocks_of(1)
    head = b"".join(bytes(part) for part in packed(header_of(names, 1, blocks), blocks, Digests())[:2])
    assert read_header(head, Digests()).tokens == 5
    assert header_bytes(head) == len(head)
    for bad in (b"", MAGIC, MAGIC + b"\xff\xff\xff\xff", head[:-1], head[:20], rng.randbytes(200)):
        with pytest.raises(DamagedError):
            read_header(bad, Digests())


def test_headers_that_are_signed_and_say_nonsense_are_refused():
    said = {
        "family": "f", "label": "", "seconds": 0, "tokens": 1, "dtype": "float32", "marks": [], "shapes": [],
        "globals": 0, "proofs": [], "salt": "",
    }  # fmt: skip
    wrong = ({"dtype": "object"}, {"shapes": [[-1]], "proofs": [""]}, {"marks": [[1]]}, {"proofs": ["zz"]}, {"salt": 1})
    texts = [b"{}", b"[]", b"null", b"\xff", b"[" * 5000, *(json.dumps(said | each).encode() for each in wrong)]
    for text in texts:
        head = MAGIC + len(text).to_bytes(4, "big") + text
        with pytest.raises(DamagedError):
            read_header(head + hashlib.sha256(head).digest(), Digests())


def test_every_dtype_of_a_cache_comes_back_bit_by_bit(tmp_path):
    for number, dtype in enumerate((np.float32, np.float16, ml_dtypes.bfloat16)):
        stored = store_in(tmp_path / "prefixes")
        blocks = [block.astype(dtype) for block in blocks_of(number)]
        header = dataclasses.replace(header_of(stored.names, number, blocks), dtype=np.dtype(dtype).name)
        assert stored.write(header, blocks)
        best = stored.find("somebody", keys_of(number), 0)
        read = stored.read(best)
        for found, wanted in zip((*read.globals, *read.rings), blocks, strict=False):
            assert found.dtype == wanted.dtype
            assert found.tobytes() == wanted.tobytes()
