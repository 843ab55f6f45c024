"""Requests to other replicas: what an address stands for, and answers that are none."""

from __future__ import annotations

import socket

import pytest

from langchain_gemma_jax.engine.prefix_store import peer_http
from langchain_gemma_jax.engine.prefix_store.peer_http import PeerAddress, PeerError, addresses_of, ask
from langchain_gemma_jax.engine.prefix_store.sealing import Encrypted
from tests.engine.prefix_store.example_prefixes import KEY, put, store_in
from tests.engine.prefix_store.peer_server import peer

pytest.importorskip("cryptography")


def test_a_name_stands_for_all_its_machines_and_a_certificates_for_one(monkeypatch):
    def known(host, port, type):  # noqa: A002
        assert (host, port, type) == ("replicas", 8000, socket.SOCK_STREAM)
        return [(0, 0, 0, "", (each, port)) for each in ("10.0.0.1", "10.0.0.2", "10.0.0.1", "::7")]

    monkeypatch.setattr(peer_http.socket, "getaddrinfo", known)
    found = addresses_of("http://replicas:8000/behind/")
    assert [each.shown for each in found] == [
        "http://10.0.0.1:8000/behind", "http://10.0.0.2:8000/behind", "http://[::7]:8000/behind",
    ]  # fmt: skip
    assert addresses_of("https://one.example") == [PeerAddress(True, "one.example", 443)]


def test_answers_that_are_not_what_was_asked_for_are_errors(tmp_path):
    stored = store_in(tmp_path / "replica", sealing=Encrypted(KEY))
    name, token = put(stored, 1), Encrypted(KEY).peer_token
    with peer(tmp_path / "replica") as server:
        (address,) = addresses_of(server.url)
        assert len(ask(address, name, token, 60, span=(0, 100)).body) == 100
        for what, how in (
            (name, {"span": (0, 2**40)}),
            ("0" * 16 + "-" + "0" * 40 + ".prefix", {"span": (0, 10)}),
            ("../../etc/passwd", {"span": (0, 10)}),
            (stored.names.family_part, {"most": 10}),
        ):
            with pytest.raises(PeerError):
                ask(address, what, token, 60, **how)
        for changed in (lambda body: body[:-1], lambda body: body + b"more"):
            server.changed = changed
            with pytest.raises(PeerError, match="where 100 are expected"):
                ask(address, name, token, 60, span=(0, 100))
        server.changed, server.drips = lambda body: body, True
        with pytest.raises(PeerError):
            ask(address, name, token, 0.2, span=(0, 1000))
    with pytest.raises(PeerError):
        ask(address, name, token, 60, span=(0, 100))
