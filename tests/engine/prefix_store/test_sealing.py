"""The proof of a block: a digest, or a key that only its owner has."""

from __future__ import annotations

import sys

import pytest

from langchain_gemma_jax.engine.prefix_store.sealing import Digests, Encrypted
from langchain_gemma_jax.errors import InstallationError
from langchain_gemma_jax.private.folder import DamagedError
from tests.engine.prefix_store.example_prefixes import found_right, put, store_in

KEY = bytes(range(32))
TEXT = b"what somebody said, which is nobody's business" * 20


def encrypted(key: bytes = KEY) -> Encrypted:
    pytest.importorskip("cryptography")
    return Encrypted(key)


def test_a_block_comes_back_only_in_its_place_in_its_file_with_its_key():
    sealing = encrypted()
    salt, header = sealing.salt(), b"h" * 32
    sealed = sealing.seal(memoryview(TEXT), 3, salt, header)
    assert len(sealed) == len(TEXT) + sealing.growth
    assert b"business" not in sealed
    assert bytes(sealing.unseal(memoryview(sealed), 3, salt, header, b"")) == TEXT
    for other, index, grain, head in (
        (encrypted(b"another key, of thirty-two bytes"), 3, salt, header),
        (sealing, 4, salt, header),
        (sealing, 3, sealing.salt(), header),
        (sealing, 3, salt, b"H" * 32),
    ):
        with pytest.raises(DamagedError):
            other.unseal(memoryview(sealed), index, grain, head, b"")


def test_the_same_text_never_looks_the_same_twice():
    sealing = encrypted()
    assert len({sealing.seal(memoryview(TEXT), 0, sealing.salt(), b"") for _ in range(50)}) == 50


def test_what_one_key_wrote_is_nothing_to_another_and_to_none(tmp_path):
    folder = tmp_path / "prefixes"
    name = put(store_in(folder, sealing=encrypted()), 1)
    for sealing in (encrypted(b"another key, of thirty-two bytes"), Digests()):
        assert not found_right(store_in(folder, sealing=sealing), 1)
    assert found_right(store_in(folder, sealing=encrypted()), 1)
    plain = put(store_in(folder), 1)
    assert plain != name, "a name is made with the key, so nobody can tell by it what was said"
    assert found_right(store_in(folder), 1)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(InstallationError, match=r"langchain-gemma-jax\[encryption\]"):
        Encrypted(KEY)
