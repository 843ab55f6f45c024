"""A sealed entry: what was written comes back, and nothing else does."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.compile_cache.entry import (
    HEAD,
    MAGIC,
    Entry,
    digest_of,
    file_of,
    peek,
    seal,
    unseal,
)
from langchain_gemma_jax.private.folder import DamagedError

PAYLOAD = random.Random(1).randbytes(2000)


def sealed(name="step 1 512", payload=PAYLOAD):
    return seal(name, payload, label="one step", seconds=1.75) + payload


@pytest.mark.parametrize("payload", [b"", b"x", PAYLOAD])
@pytest.mark.parametrize("name", ["a", "", "naïve \u2603 \n\"'", "lone \ud800", "x" * 10_000])
def test_what_was_written_comes_back(name, payload):
    assert unseal(sealed(name, payload), name) == Entry(name, "one step", 1.75, payload)


def test_a_thousand_flipped_bits_are_found():
    data = sealed()
    chance = random.Random(2)
    header = len(data) - len(PAYLOAD)
    # A third of them before the payload, which is short: magic, digest, length and header are all hit.
    bits = [chance.randrange(8 * (header if trial % 3 == 0 else len(data))) for trial in range(1000)]
    accepted = []
    for bit in bits:
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            unseal(bytes(flipped), "step 1 512")
        except DamagedError:
            continue
        accepted.append(bit)
    assert accepted == []
    parts = {min(bit // 8 // 4, 11) for bit in bits if bit // 8 < header}
    assert parts == set(range(12)), "some of them hit each part of the head"


def test_every_bit_of_the_head_is_covered():
    data = sealed(payload=b"x")
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedError):
            unseal(bytes(flipped))


@pytest.mark.parametrize("end", [0, 1, 7, 8, 39, 40, 43, 44, 60, -1])
def test_a_cut_is_found(end):
    with pytest.raises(DamagedError):
        unseal(sealed()[:end], "step 1 512")


def test_bytes_too_many_are_found():
    with pytest.raises(DamagedError, match="digest"):
        unseal(sealed() + b"\0")


def test_the_entry_of_another_name_is_not_taken():
    with pytest.raises(DamagedError, match="another name"):
        unseal(sealed("a"), "b")


@pytest.mark.parametrize("header", [b"", b"[]", b"{}", b'{"name":"a","label":""}', b"\xff", b"[" * 20_000, b"null"])
def test_a_header_that_this_version_did_not_write_is_not_taken(header):
    import hashlib

    rest = len(header).to_bytes(4, "big") + header
    with pytest.raises(DamagedError, match="header"):
        unseal(MAGIC + hashlib.sha256(rest).digest() + rest)


def test_peeking_reads_the_head_alone():
    assert peek(sealed()[:HEAD]) == ("step 1 512", "one step", 1.75)
    assert peek(sealed()[:-1000]) == ("step 1 512", "one step", 1.75)


@pytest.mark.parametrize("data", [b"", b"x" * 100, MAGIC, sealed()[:50], MAGIC + b"\xff" * 100])
def test_peeking_at_rubbish(data):
    with pytest.raises(DamagedError):
        peek(data)


def test_a_file_name_is_safe_whatever_the_name():
    names = ["a", "../../etc/passwd", "a\0b", "x" * 10_000, "\ud800"]
    files = {file_of(name) for name in names}
    assert len(files) == len(names)
    assert all(len(file) == 46 and file.endswith(".entry") and file[:40].isalnum() for file in files)


def test_the_digest_is_the_one_that_is_stated():
    import hashlib

    assert digest_of(sealed()) == hashlib.sha256(sealed()[40:]).hexdigest()
