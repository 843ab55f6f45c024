"""What goes between hosts of a group: frames nobody else can make, and names by which both sides mean the same."""

from __future__ import annotations

import gc
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import jax
import jax.numpy as jnp
import pytest

from langchain_gemma_jax import InputError, InstallationError
from langchain_gemma_jax.cli.command import main, parser
from langchain_gemma_jax.cli.serving.group_options import group_of
from langchain_gemma_jax.errors import HostLostError
from langchain_gemma_jax.scale.hosts import group
from langchain_gemma_jax.scale.hosts.frames import FrameSocket
from langchain_gemma_jax.scale.hosts.group import GroupPlan
from langchain_gemma_jax.scale.hosts.leader import HostPrograms, Leader
from langchain_gemma_jax.scale.hosts.line import Line
from langchain_gemma_jax.scale.hosts.names import ArrayNames, each
from tests.scale.host_group import two_ports

KEY, OTHER = b"k" * 32, b"o" * 32


_made: list[FrameSocket] = []


@pytest.fixture(autouse=True)
def _closed():
    yield
    while _made:
        _made.pop().close()


def ends() -> tuple[FrameSocket, FrameSocket]:
    one, other = socket.socketpair()
    _made.extend((FrameSocket(one), FrameSocket(other)))
    return _made[-2], _made[-1]


def lines(leads_with: bytes = KEY, follows_with: bytes = KEY) -> list[object]:
    """Both ends of a line, or the errors of those who make them."""
    one, other = ends()

    def made(side: tuple[FrameSocket, bytes]) -> object:
        frames, key = side
        try:
            return Line(frames, key, leads=frames is one)
        except HostLostError as error:
            frames.close()
            return error

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(made, ((one, leads_with), (other, follows_with))))


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


def test_arrays_have_names_until_they_are_gone():
    names = ArrayNames()
    arrays = [jnp.full(3, number) for number in range(5)]
    first, second = names.batch(), names.batch()
    names.give(first, arrays[:3])
    names.give(second, arrays[3:])
    assert each(names.of(arrays)) == [(first, 0), (first, 1), (first, 2), (second, 0), (second, 1)]
    assert names.of(arrays[:3]) == [[first, 0, 3]]  # a model's weights are one run
    assert each(names.of([arrays[1], arrays[0], arrays[1]])) == [(first, 1), (first, 0), (first, 1)]
    arrays[0].delete()
    jax.jit(lambda array: array + 1, donate_argnums=0)(arrays[1])
    names.look()
    assert each(names.gone()) == [(first, 0), (first, 1)]
    del arrays[:3]
    gc.collect()
    assert each(names.gone()) == [(first, 2)]  # and no other twice
    with pytest.raises(LookupError):
        names.of([jnp.ones(2)])


def test_a_program_begins_when_all_have_made_it():
    """Who begins it waits within it for the others, and XLA gives that up after some seconds."""
    leads, follows = lines()
    leader, ran = Leader([leads]), []
    leader.begin()
    begin = HostPrograms(leader, "of a model").beside(("read", 16), lambda: ran.append("it") or jnp.ones(2))
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(begin)
        told, _ = follows.receive()
        assert (told["do"], told["key"], ran) == ("ready", ["read", 16], [])
        follows.send({"do": "ready", "answers": told["number"]})
        assert follows.receive()[0]["do"] == "run"
        running.result()
        threads.submit(begin).result()
        assert follows.receive()[0]["do"] == "run"  # which is asked once
        assert len(ran) == 2
        other = HostPrograms(leader, "of a model").beside(("read", 64), lambda: ran.append("the other"))
        waiting = threads.submit(other)
        assert follows.receive()[0]["do"] == "ready"
        follows.close()
        with pytest.raises(HostLostError, match="Host 1 of the group is lost"):
            waiting.result()
    assert len(ran) == 2


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


def test_half_a_frame_is_silence():
    one, other = socket.socketpair()
    reader = FrameSocket(one)
    other.sendall(b"\0")
    for until in (None, time.monotonic()):
        with pytest.raises(TimeoutError):
            reader.recv_bytes(100, 0.01, until)
    other.close()
    with pytest.raises(EOFError):
        reader.recv_bytes(100, 60.0)
    one, other = socket.socketpair()
    sender, reader, large = FrameSocket(one), FrameSocket(other), b"x" * 3_000_000  # more than a socket holds
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(sender.send_bytes, large, 60.0)
        assert reader.recv_bytes(len(large), 60.0) == large
        sending.result()
    with pytest.raises(TimeoutError, match="nothing was taken"):
        sender.send_bytes(large, 0.01)
    with pytest.raises(OSError, match="a frame of 3000000 bytes came, where 100 are the most"):
        reader.recv_bytes(100, 60.0)


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--hosts", "2"], "--host-number, --leader, --hosts-key-file is missing"),
        (["--hosts", "1", "--host-number", "0", "--leader", "a:1", "--hosts-key-file", "/none"], "expected 2 at least"),
        (["--hosts", "2", "--host-number", "2", "--leader", "a:1", "--hosts-key-file", "/none"], "or up to 1 for one"),
        (["--hosts", "2", "--host-number", "0", "--leader", "a", "--hosts-key-file", "/none"], "expected HOST:PORT"),
        (["--hosts", "2", "--host-number", "0", "--leader", "a:1", "--hosts-key-file", "/none"], "Make one, and give"),
    ],
)
def test_a_group_that_cannot_be_is_refused(arguments, said, capsys):
    assert main(["serve", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_group_is_read_from_the_command_line(tmp_path):
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("x" * 31)
    asked = ["serve", "--hosts=2", "--host-number=1", "--leader=[::1]:8476", f"--hosts-key-file={key}"]
    with pytest.raises(InputError, match="expected 32 bytes at least, found 31"):
        group_of(parser().parse_args(asked))
    key.write_text("x" * 32)
    found = group_of(parser().parse_args(asked))
    assert found.address == ("::1", 8476)
    assert "xxx" not in repr(found)
    assert group_of(parser().parse_args(["serve"])) is None
