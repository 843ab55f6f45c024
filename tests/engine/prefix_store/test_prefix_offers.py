"""Files that a replica offers: those of its own folder, to holders of the key, and nothing else of the disk."""

from __future__ import annotations

import os

import pytest

from langchain_gemma_jax.engine.prefix_store.peer_http import PART
from langchain_gemma_jax.engine.prefix_store.prefix_file import header_bytes
from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_offers import PrefixOffers
from langchain_gemma_jax.engine.prefix_store.sealing import Encrypted
from tests.engine.prefix_store.example_prefixes import KEY, put, store_in

pytest.importorskip("cryptography")


@pytest.fixture
def kept(tmp_path):
    return store_in(tmp_path / "kept", sealing=Encrypted(KEY))


@pytest.fixture
def offers(tmp_path):
    return PrefixOffers(PrefixFolder(tmp_path / "kept", 2**30), Encrypted(KEY).peer_token, "me")


def test_headers_are_those_of_the_files_the_latest_first(kept, offers, tmp_path):
    names, wanted = [put(kept, seed) for seed in range(4)], b""
    for age, name in enumerate(names):
        whole = (tmp_path / "kept" / name).read_bytes()
        wanted += whole[: header_bytes(whole)]
        os.utime(tmp_path / "kept" / name, (1e9 - age, 1e9 - age))
    assert offers.headers(kept.names.family_part) == wanted
    assert offers.headers("0" * 16 + "-") == b""
    before = offers.tag()
    assert before == offers.tag()
    put(kept, 9)
    assert offers.tag() != before


def test_only_files_of_the_folder_are_read_and_only_by_their_names(kept, offers, tmp_path):
    name = put(kept, 1)
    whole = (tmp_path / "kept" / name).read_bytes()
    assert offers.part(name, 3, 50) == whole[3:50]
    assert offers._folder.counts.prefix_bytes_offered == 47
    secret = tmp_path / "kept" / "answers-secret.prefix"
    secret.write_bytes(b"a person's words")
    link = "0" * 16 + "-" + "1" * 40 + ".prefix"
    (tmp_path / "kept" / link).symlink_to(secret)
    for asked in (secret.name, link, "../kept/" + name, f"/{name}", name + "\n", name.upper(), ""):
        assert offers.part(asked, 0, 10) is None, asked
    for first, end in ((0, len(whole) + 1), (-1, 5), (5, 5), (9, 3), (0, PART + 1)):
        assert offers.part(name, first, end) is None
    for part in ("", "answers-", "../", kept.names.family_part[:-2], "*"):
        assert offers.headers(part) is None


def test_who_has_another_key_or_none_is_a_stranger(offers):
    assert offers.knows(Encrypted(KEY).peer_token)
    for token in ("", Encrypted(b"another key, of thirty-two bytes").peer_token, "é", "\ud800"):
        assert not offers.knows(token)
