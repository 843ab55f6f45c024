"""The messages between two hosts: frames that only they can make."""

from __future__ import annotations

import threading

import pytest

from langchain_gemma_jax.errors import HostLostError
from langchain_gemma_jax.scale.hosts.line import Line
from tests.scale.hosts.made_lines import KEY, OTHER, ends, lines


def test_what_is_sent_arrives():
    leader, follower = lines()
    leader.send({"do": "run", "key": ["read", 16]}, [b"ab", memoryview(b"cd")])
    follower.send({"do": "beat"})
    told, data = follower.receive()
    assert (told, bytes(data)) == ({"do": "run", "key": ["read", 16]}, b"abcd")
    assert leader.receive()[0] == {"do": "beat"}


@pytest.mark.parametrize("keys", [(KEY, OTHER), (OTHER, KEY)])
def test_who_has_another_key_is_sent_nothing(keys):
    assert all("has another key" in str(end) or "broke" in str(end) for end in lines(*keys))


def test_a_line_is_no_mirror(monkeypatch):
    """Whoever sends back what it is sent has not shown that it has the key."""
    one, other = ends()

    def mirror() -> None:
        for _ in range(2):
            other.send_bytes(other.recv_bytes(4096, 60.0), 60.0)

    thread = threading.Thread(target=mirror)
    thread.start()
    with pytest.raises(HostLostError, match="another key"):
        Line(one, KEY, leads=True)
    thread.join()


@pytest.mark.parametrize("what", ["changed", "repeated", "cut", "made up"])
def test_a_frame_of_somebody_else_ends_the_line(what):
    leader, follower = lines()
    sender, kept = leader._frames, []
    leader._frames = type("Kept", (), {"send_bytes": lambda _, frame, __: kept.append(frame)})()
    leader.send({"do": "end"})
    frame = kept[0]
    sent = {
        "changed": [frame[:-1] + b"!"],
        "repeated": [frame, frame],
        "cut": [frame[:20]],
        "made up": [bytes(32) + frame[32:]],
    }
    for each_frame in sent[what]:
        sender.send_bytes(each_frame, 60.0)
    if what == "repeated":
        follower.receive()
    with pytest.raises(HostLostError, match="was not sent by its other end"):
        follower.receive()


def test_silence_and_a_broken_line_are_a_loss():
    leader, follower = lines()
    follower.patience = 0.05
    with pytest.raises(HostLostError, match=r"nothing came for 0\.05 s"):
        follower.receive()
    leader.close()
    with pytest.raises(HostLostError, match="broke"):
        follower.receive()
    with pytest.raises(HostLostError, match="broke"):
        leader.send({"do": "end"})
