"""The messages of hosts of a group: frames that only they can make, and names by which both sides mean the same."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from langchain_gemma_jax import InstallationError
from langchain_gemma_jax.errors import HostLostError
from langchain_gemma_jax.scale.hosts import group
from langchain_gemma_jax.scale.hosts.group import GroupPlan
from langchain_gemma_jax.scale.hosts.line import Line
from tests.scale.host_group import two_ports
from tests.scale.hosts.made_lines import KEY, OTHER
from tests.waiting import LONG


def plan(port: int, number: int, key: bytes = KEY, hosts: int = 2) -> GroupPlan:
    return GroupPlan(hosts, number, f"127.0.0.1:{port}", key)


def test_followers_come_to_their_leader_and_strangers_do_not():
    port = two_ports()
    with ThreadPoolExecutor(3) as threads:
        stranger = threads.submit(group._to_leader, plan(port, 1, OTHER, 3))
        leader = threads.submit(group._followers, plan(port, 0, hosts=3))
        with pytest.raises(HostLostError):
            stranger.result()
        with socket.create_connection(("127.0.0.1", port + 1)):
            pass  # and says nothing
        with pytest.raises(InstallationError, match=r"it is number 4, and those .* waits for are 1, 2"):
            group._to_leader(plan(port, 4, hosts=5))
        followers = [threads.submit(group._to_leader, plan(port, number, hosts=3)) for number in (2, 1)]
        ends = leader.result()
        for number, end in enumerate(ends, 1):
            end.send({"do": "you", "number": number})
        for number, follower in zip((2, 1), followers, strict=True):
            told: dict[str, object] = {"do": "beat"}
            while told["do"] == "beat":
                told, _ = follower.result().receive()
            assert told == {"do": "you", "number": number}
        for end in (*ends, *(follower.result() for follower in followers)):
            end.close()


STRANGERS = (b"", b"\0", b"GET / HTTP/1.1\r\nHost: leader\r\n\r\n", b"\0\0\0\x20" + bytes(32), b"\xff" * 5000)


def test_a_group_forms_while_strangers_hold_on_to_its_door():
    """They connect and send nothing, one byte, garbage, or what a host would send, and none lets go by itself."""
    port, hosts = two_ports(), 4
    with ThreadPoolExecutor(hosts) as threads, ExitStack() as held:
        leader = threads.submit(group._followers, plan(port, 0, hosts=hosts))
        strangers = []
        for number in range(50):
            while True:
                try:
                    strangers.append(held.enter_context(socket.create_connection(("127.0.0.1", port + 1))))
                    break
                except ConnectionRefusedError:
                    time.sleep(0.01)  # the leader does not listen yet
            strangers[-1].sendall(STRANGERS[number % len(STRANGERS)])
        followers = [threads.submit(group._to_leader, plan(port, number, hosts=hosts)) for number in range(1, hosts)]
        lines = leader.result()
        for end in (*lines, *(follower.result() for follower in followers)):
            end.close()
        assert len(lines) == hosts - 1
        for stranger in strangers:
            stranger.settimeout(None)
            with suppress(ConnectionResetError):
                while stranger.recv(4096):  # the leader has shown nobody anything but what it begins with
                    pass


def test_more_strangers_than_there_is_room_for_make_way_for_whoever_comes_last(monkeypatch):
    monkeypatch.setattr(group, "_AT_ONCE", 3)
    port = two_ports()
    with ThreadPoolExecutor(2) as threads, ExitStack() as held:
        leader = threads.submit(group._followers, plan(port, 0))
        for _ in range(20):
            with suppress(ConnectionRefusedError):
                held.enter_context(socket.create_connection(("127.0.0.1", port + 1)))
        follower = threads.submit(group._to_leader, plan(port, 1))
        for end in (*leader.result(), follower.result()):
            end.close()


def test_a_follower_tries_again_after_whatever_was_not_its_leader():
    """Something else listens at the port first: it hangs up, or says something that no leader says."""
    port = two_ports()
    with ThreadPoolExecutor(2) as threads:
        with socket.create_server(("127.0.0.1", port + 1)) as other:
            follower = threads.submit(group._to_leader, plan(port, 1))
            for said in (b"", b"\0", b"\xff" * 40, b"\0\0\0\x05hello"):
                with other.accept()[0] as came:
                    came.sendall(said)
        leader = threads.submit(group._followers, plan(port, 0))
        for end in (*leader.result(), follower.result()):
            end.close()


def test_a_door_that_closes_while_a_thread_still_ends_keeps_the_line_that_it_admitted(monkeypatch):
    """The leader may see the last follower before the thread that admitted it has ended."""
    admit, admitted, closed, ended = group._Door._admit, threading.Event(), threading.Event(), threading.Event()

    def slow(*args, **kwargs) -> None:
        admit(*args, **kwargs)
        admitted.set()
        assert closed.wait(LONG)
        ended.set()

    monkeypatch.setattr(group._Door, "_admit", slow)
    with socket.create_server(("127.0.0.1", 0)) as server:
        door = group._Door(plan(1, 0))
        there = socket.create_connection(server.getsockname())
        door.welcome(server.accept()[0])
    follower = Line(group._frames(there), KEY, leads=False)
    follower.send({"do": "hello", "number": 1, "versions": group._versions()})
    assert admitted.wait(LONG)
    assert door.missing() == []
    (line,) = door.close()
    closed.set()
    assert ended.wait(LONG)
    line.send({"do": "join"})
    told: dict[str, object] = {"do": "beat"}
    while told["do"] == "beat":
        told, _ = follower.receive()
    assert told == {"do": "join"}
    for end in (line, follower):
        end.close()


def test_a_follower_that_went_away_before_the_others_came_may_come_again():
    port = two_ports()
    with ThreadPoolExecutor(3) as threads:
        leader = threads.submit(group._followers, plan(port, 0, hosts=3))
        gone = come(plan(port, 1, hosts=3))
        gone.close()
        followers = [threads.submit(group._to_leader, plan(port, number, hosts=3)) for number in (1, 2)]
        for end in (*leader.result(), *(follower.result() for follower in followers)):
            end.close()


def come(as_one: GroupPlan) -> Line:
    """A line to the leader, which has let this follower in."""
    while True:
        try:
            frames_there = group._frames(socket.create_connection(("127.0.0.1", as_one.address[1] + 1)))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    found = Line(frames_there, as_one.key, leads=False)
    found.send({"do": "hello", "number": as_one.number, "versions": group._versions()})
    assert found.receive()[0] == {"do": "beat"}
    return found


def test_other_versions_are_refused_at_both_ends(monkeypatch):
    port, of_leader = two_ports(), threading.local()
    monkeypatch.setattr(group, "_versions", lambda: ["one"] if getattr(of_leader, "yes", False) else ["another"])

    def lead() -> object:
        of_leader.yes = True
        return group._followers(plan(port, 0))

    with ThreadPoolExecutor(2) as threads:
        ends = [threads.submit(group._to_leader, plan(port, 1)), threads.submit(lead)]
        for end in ends:
            with pytest.raises(InstallationError, match="Install the same on all hosts"):
                end.result()


def test_who_does_not_come_is_named(monkeypatch):
    monkeypatch.setattr(group, "TOGETHER", 0.2)
    with pytest.raises(HostLostError, match=r"did not come to 127.0.0.1:\d+ within 0.2 s: 1, 2"):
        group._followers(plan(two_ports(), 0, hosts=3))
    with pytest.raises(HostLostError, match="Start it with --host-number 0"):
        group._to_leader(plan(two_ports(), 1))
