"""Prefixes of other replicas: what one has read the other takes, and nothing wrong is ever used."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from langchain_gemma_jax.engine.prefix_store import prefix_peers
from langchain_gemma_jax.engine.prefix_store.prefix_names import PrefixNames, family_name
from langchain_gemma_jax.engine.prefix_store.prefix_peers import OfferedPrefixes, Peers
from langchain_gemma_jax.engine.prefix_store.sealing import Encrypted
from tests.engine.prefix_store.example_prefixes import FAMILY, KEY, SCOPE, blocks_of, keys_of, put, store_in
from tests.engine.prefix_store.peer_server import peer
from tests.engine.prefix_store.test_shared_prefixes import damaged

pytest.importorskip("cryptography")

REPOSITORY = Path(__file__).parents[3]
LONG = 600.0  # seconds: no test waits for it


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves when a test says so, for the rests between two looks."""
    now = [time.monotonic()]
    monkeypatch.setattr(prefix_peers.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def replica(tmp_path):
    """A replica with the prefixes 1, 2 and 3 of one model."""
    stored = store_in(tmp_path / "replica", sealing=Encrypted(KEY))
    for seed in (1, 2, 3):
        put(stored, seed)
    with peer(tmp_path / "replica") as server:
        yield server


def asking(*urls: str, key: bytes = KEY, family: str = FAMILY, me: str = "me") -> OfferedPrefixes:
    sealing = Encrypted(key)
    return OfferedPrefixes(PrefixNames(family, sealing.secret), Peers(urls, sealing, me))


def got(offered: OfferedPrefixes, seed: int) -> bool:
    """True if a prefix is offered and comes, each number as it was. It may be missing, and never be wrong."""
    found = offered.find(SCOPE, keys_of(seed), 0)
    arrays = None if found is None else offered.read(found, LONG)
    if arrays is None:
        return False
    assert arrays.stored.mark.length == 5
    for one, wanted in zip((*arrays.globals, *arrays.rings), blocks_of(seed), strict=False):
        np.testing.assert_array_equal(one, wanted)
    return True


def test_what_one_replica_has_another_takes_and_no_other_key_model_or_scope(replica, said):
    offered = asking(replica.url)
    offered.refresh()
    assert all(got(offered, seed) for seed in (1, 2, 3))
    assert not got(offered, 4)
    assert offered.find("another", keys_of(1), 0) is None
    assert offered.find(SCOPE, keys_of(1), 5) is None, "no longer than what is here already"
    other = asking(replica.url, family=family_name("another model", "x"))
    other.refresh()
    assert not got(other, 1)
    assert not said
    stranger = asking(replica.url, key=b"another key, of thirty-two bytes")
    stranger.refresh()
    assert not got(stranger, 1)
    assert "another prefix_key_file" in said.pop()


def test_a_list_is_sent_again_only_if_it_changed(replica, clock, monkeypatch):
    offered = asking(replica.url)
    sent = []
    replica.changed = lambda body: sent.append(len(body)) or body
    for _ in range(3):
        offered.refresh()
        offered.refresh()
        clock[0] += 2 * prefix_peers.LOOK_SECONDS
    assert len(sent) == 3
    assert sent[0] > 0
    assert sent[1:] == [0, 0]
    assert got(offered, 2)


def test_a_replica_does_not_ask_itself(replica, clock):
    itself = asking(replica.url, me="peer")
    for _ in range(3):
        itself.refresh()
        clock[0] += 2 * prefix_peers.LOOK_SECONDS
    assert not got(itself, 1)
    assert len(replica.asked) == 1


def wrong_answers(replica, count: int) -> None:
    """Damage answers so many times: nothing wrong is used, and the next whole one is."""
    dice, used = random.Random(1), 0
    for number in range(count):
        fresh, listed = asking(replica.url), number % 2
        if not listed:
            fresh.refresh()
        replica.changed = lambda body: damaged(body, dice) if body else body
        if listed:
            fresh.refresh()
            replica.changed = lambda body: body
        used += got(fresh, 1)
        replica.changed = lambda body: body
    assert used < count / 2, "most damages were noticed"
    fresh = asking(replica.url)
    fresh.refresh()
    assert got(fresh, 1)


def test_a_damaged_answer_is_never_used(replica, said):
    wrong_answers(replica, 40)
    assert len(said) == 1, "one warning, however often"
    said.clear()


@pytest.mark.slow
def test_of_a_thousand_damaged_answers_none_is_used(replica, said):
    wrong_answers(replica, 1000)
    said.clear()


def test_one_replicas_file_is_not_taken_for_anothers(replica, tmp_path, said):
    """A peer sends another prefix's blocks, sealed with the same key: blocks are bound to their header."""
    offered = asking(replica.url)
    offered.refresh()
    folder = tmp_path / "replica"
    one, two = (offered.find(SCOPE, keys_of(seed), 0).stored.file for seed in (1, 2))
    header = offered.find(SCOPE, keys_of(1), 0).stored.header
    (folder / one).write_bytes((folder / two).read_bytes())
    assert not got(offered, 1)
    assert "is not what was written" in said.pop()
    assert offered.find(SCOPE, keys_of(1), 0) is None, "it is not asked for again"
    assert got(offered, 2)
    assert header.digest in offered._refused


@pytest.mark.parametrize("how", ["waits", "drips"])
def test_a_slow_peer_is_left_alone_for_longer_and_longer(replica, clock, how, monkeypatch):
    monkeypatch.setattr(prefix_peers, "LIST_SECONDS", 0.1)
    setattr(replica, how, True)
    offered = asking(replica.url)
    rests = []
    for _ in range(4):
        before = len(replica.asked)
        while len(replica.asked) == before:
            offered.refresh()
            clock[0] += prefix_peers.LOOK_SECONDS + 0.001
        (only,) = offered._peers._peers.values()
        while only.failed == len(rests):  # the thread that asked may still be at it
            time.sleep(0)
        rests.append(only.due_at)
        assert offered.find(SCOPE, keys_of(1), 0) is None
        clock[0] = only.due_at - prefix_peers.LOOK_SECONDS + 0.001
    setattr(replica, how, False)
    replica.over.set()
    monkeypatch.setattr(prefix_peers, "LIST_SECONDS", 60.0)  # a busy machine may take long to answer
    clock[0] += LONG
    offered.refresh()
    assert got(offered, 1)


def test_a_prefix_that_comes_too_slowly_is_given_up(replica, monkeypatch):
    monkeypatch.setattr(prefix_peers, "LEAST_SECONDS", 0.05)
    offered = asking(replica.url)
    offered.refresh()
    found = offered.find(SCOPE, keys_of(1), 0)
    replica.drips = True
    assert offered.read(found, 0.05) is None
    assert offered.find(SCOPE, keys_of(1), 0) is None


def test_a_peer_that_is_gone_is_no_error(replica, said, monkeypatch):
    known = socket.getaddrinfo

    def look_up(host, *rest, **how):
        if host.endswith(".invalid"):
            raise socket.gaierror("Name or service not known")
        return known(host, *rest, **how)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    offered = asking(replica.url, "http://127.0.0.1:9", "http://no-such-name.invalid:1")
    offered.refresh()
    assert got(offered, 1)
    found = offered.find(SCOPE, keys_of(2), 0)
    replica.shutdown()
    replica.server_close()
    assert offered.read(found, LONG) is None
    assert "no-such-name.invalid" in said.pop()
    assert not said


@pytest.mark.slow
def test_peers_that_are_killed_at_fifty_moments_leave_nothing_wrong(tmp_path, said):
    stored = store_in(tmp_path / "replica", sealing=Encrypted(KEY))
    for seed in range(20):
        put(stored, seed, width=20_000)  # some megabytes each, so that a kill meets a transfer
    command = [sys.executable, "-m", "tests.engine.prefix_store.peer_server", str(tmp_path / "replica")]
    dice, whole = random.Random(2), 0
    for _ in range(50):
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as server:
            offered = asking(server.stdout.readline().strip())
            killer = threading.Timer(dice.random() * 0.4, server.kill)
            killer.start()
            offered.refresh()
            for seed in range(20):
                found = offered.find(SCOPE, keys_of(seed), 0)
                arrays = None if found is None else offered.read(found, LONG)
                if arrays is not None:
                    whole += 1
                    for one, wanted in zip((*arrays.globals, *arrays.rings), blocks_of(seed, 20_000), strict=False):
                        np.testing.assert_array_equal(one, wanted)
            killer.join()
    assert whole > 50, "some were whole before the kill"
    assert not said, "a peer that is gone is worth no warning"
