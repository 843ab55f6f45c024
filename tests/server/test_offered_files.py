"""``GET /kv/``: prefixes for replicas that have the key, whatever keys callers of models need."""

from __future__ import annotations

import http.client

import pytest

from langchain_gemma_jax.engine.prefix_store.peer_http import addresses_of, ask
from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_offers import PrefixOffers
from langchain_gemma_jax.engine.prefix_store.sealing import Encrypted
from langchain_gemma_jax.server import offered_files
from langchain_gemma_jax.server.http.api_keys import ApiKeys
from tests.engine.prefix_store.example_prefixes import KEY, put, store_in
from tests.engine.prefix_store.test_prefix_peers import asking, got
from tests.serving import ALICE, asked, serving

pytest.importorskip("cryptography")
pytest.importorskip("uvicorn", reason="the extra [serve]")

TOKEN = {"authorization": f"Bearer {Encrypted(KEY).peer_token}"}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The prefixes of the server's process."""
    stored = store_in(tmp_path / "kept", sealing=Encrypted(KEY))
    for seed in (1, 2):
        put(stored, seed)
    offers = PrefixOffers(PrefixFolder(tmp_path / "kept", 2**30), Encrypted(KEY).peer_token, "server")
    monkeypatch.setattr(offered_files, "_offers", lambda: offers)
    return stored


@pytest.mark.parametrize("keys", [None, ApiKeys({ALICE: "alice"})], ids=["no keys", "keys"])
def test_another_replica_takes_what_this_one_has(kept, keys):
    with serving(None, keys=keys) as server:
        offered = asking(server.listening.shown)
        offered.refresh()
        assert got(offered, 1)
        assert got(offered, 2)
        assert not got(offered, 3)


def test_who_has_no_key_gets_nothing_and_a_key_opens_nothing_else(kept):
    part = kept.names.family_part
    with serving(None, keys=ApiKeys({ALICE: "alice"})) as server:
        for headers in ({}, {"authorization": f"Bearer {ALICE}"}, {"authorization": TOKEN["authorization"][7:]}):
            for what in (part, put(kept, 1)):
                status, told, _ = asked(server.listening.shown, f"/kv/{what}", headers=headers | {"range": "bytes=0-9"})
                assert status == 401
                assert "prefix_key_file" in str(told)
        assert asked(server.listening.shown, "/v1/models", headers=TOKEN)[0] == 401
        (address,) = addresses_of(server.listening.shown)
        found = ask(address, part, Encrypted(KEY).peer_token, 600)
        assert found.body
        assert ask(address, part, Encrypted(KEY).peer_token, 600, known=found.tag).body is None


def test_requests_that_make_no_sense_are_refused_by_name(kept):
    name = put(kept, 1)
    with serving(None) as server:
        for what, headers, status in (
            (name, {}, 416),
            (name, {"range": "bytes=0-"}, 416),
            (name, {"range": "bytes=9-3"}, 404),
            (name, {"range": f"bytes=0-{10**17}"}, 404),
            ("nothing", {"range": "bytes=0-9"}, 404),
            ("x-", {}, 404),
        ):
            assert asked(server.listening.shown, f"/kv/{what}", headers=TOKEN | headers)[0] == status, (what, headers)
        assert asked(server.listening.shown, f"/kv/{name}", b"{}", TOKEN)[0] == 405
        connection = http.client.HTTPConnection(server.listening.shown.removeprefix("http://"), timeout=600)
        connection.request("GET", f"/kv/{name}", headers=TOKEN | {"range": "bytes=2-5"})
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("content-range"), len(answer.read())) == (206, "bytes 2-5/*", 4)
        connection.close()


def test_a_server_without_peers_says_how_they_are_named(monkeypatch):
    monkeypatch.setattr(offered_files, "_offers", lambda: None)
    with serving(None) as server:
        status, told, _ = asked(server.listening.shown, "/kv/x", headers=TOKEN)
        assert status == 404
        assert "--prefix-peers" in str(told)
