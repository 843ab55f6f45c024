"""A group of hosts that Ray starts: its plan, its processes, and that one lost host has all of them begin again."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.cli.command import parser
from langchain_gemma_jax.cli.serving.group_options import group_of
from langchain_gemma_jax.errors import HostLostError, InputError, InstallationError
from langchain_gemma_jax.scale import ray_hosts as module
from langchain_gemma_jax.scale.ray_hosts import HostProcess, HostsPlan, RayHosts, free_pair, main, ray_hosts

ROOT = Path(__file__).parents[2]
HAS_RAY = importlib.util.find_spec("ray") is not None


def test_a_plan_is_read_from_texts_and_what_is_none_is_told():
    plan = HostsPlan.read({"model": "m", "hosts": "3", "gpus": "8", "warmup": "false", "strategy": "PACK"})
    assert (plan.hosts, plan.gpus, plan.warmup) == (3, 8.0, False)
    assert plan.bundle == {"CPU": 1.0, "GPU": 8.0}
    for wrong, said in (
        ({"host": "3"}, "no argument is called host. There are: model, hosts"),
        ({"hosts": "1"}, "hosts: expected a number from 2, found 1"),
        ({"hosts": "two"}, "hosts: expected a whole number, found 'two'"),
        ({"strategy": "SPLIT"}, "strategy: expected one of STRICT_SPREAD, SPREAD, PACK, STRICT_PACK, found 'SPLIT'"),
        ({"devices": "many"}, "devices: expected a number or \"auto\", found 'many'"),
        ({"port": "70000"}, "port: expected a number from 1, found 70000"),
    ):
        with pytest.raises(InputError, match=said):
            HostsPlan.read(wrong)
    with pytest.raises(InputError, match="expected NAME=VALUE, found hosts"):
        main(["hosts"])


def test_the_command_of_each_host_is_one_that_the_server_takes(tmp_path):
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("k" * 40)
    for keys, host in (("", "127.0.0.1"), ("keys", "10.0.0.1")):
        plan = HostsPlan(model="sprout-s", hosts=3, max_context=512, warmup=False, api_key_file=keys)
        for number in range(3):
            _, _, name, *words = plan.command(number, "10.0.0.1:8476", str(key))
            assert name == "langchain_gemma_jax_command"
            asked = parser().parse_args(words)
            group = group_of(asked)
            assert (group.hosts, group.number, group.address) == (3, number, ("10.0.0.1", 8476))
            assert (asked.host, asked.port, asked.max_context, asked.no_warmup) == (host, 8000, 512, True)
            assert asked.models == ["sprout-s"]


def test_a_process_is_begun_looked_at_and_ended(tmp_path, monkeypatch):
    code = "import sys, pathlib; print(pathlib.Path(sys.argv[1]).read_text(), flush=True); input()"
    monkeypatch.setattr(HostsPlan, "command", lambda _, number, leader, key: [sys.executable, "-c", code, key])
    monkeypatch.setattr(module.subprocess, "Popen", subprocess_with_input)
    host = HostProcess(HostsPlan(), 1)
    assert (host.status(), host.log_end(), host.end()) == (None, "", None)
    number = host.start("127.0.0.1:1", b"secret" * 6, {})
    assert number == host.number() > 0
    while "c2VjcmV0" not in host.log_end():
        assert host.status() is None
    host._process.stdin.close()
    assert host.end(now=True) in {-9, 1}, "killed, or it found the end of its input"
    assert host.status() is not None
    assert "c2VjcmV0" in host.log_end()
    assert host._folder is None, "the key does not stay"


def subprocess_with_input(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
    return POPEN(*arguments, stdin=subprocess.PIPE, **options)  # type: ignore[call-overload]


POPEN = subprocess.Popen


class ActorGoneError(Exception):
    """Stands for Ray's own."""


class Actor:
    """A stand-in for an actor of Ray's."""

    def __init__(self, plan: HostsPlan, number: int) -> None:
        self.ended: list[int | None] = [None]
        self.calls: list[str] = []
        self.gone = 0  # calls that find it gone
        for name in ("address", "start", "status", "end", "log_end", "number"):
            setattr(self, name, SimpleNamespace(remote=lambda *a, _name=name, **k: self.asked(_name)))

    def asked(self, name: str) -> object:
        self.calls.append(name)
        if self.gone:
            self.gone -= 1
            return ActorGoneError()
        if name == "status":
            return self.ended[-1]
        if name == "start":
            self.ended.append(None)
        if name == "end":
            self.ended.append(0)
        return "10.0.0.1:8476" if name == "address" else "Out of disk." if name == "log_end" else 0


def taken(found: object) -> object:
    for each in found if isinstance(found, list) else [found]:
        if isinstance(each, ActorGoneError):
            raise each
    return found


@pytest.fixture
def group(monkeypatch):
    ray = SimpleNamespace(
        get=taken,
        kill=lambda actor: None,
        util=SimpleNamespace(remove_placement_group=lambda placement: None),
        exceptions=SimpleNamespace(RayActorError=ActorGoneError),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.exceptions", ray.exceptions)
    plan = HostsPlan(port=8123)
    group = RayHosts(plan, [Actor(plan, number) for number in range(2)], None)
    group.keys, group.pauses = [], []
    monkeypatch.setattr(module.time, "sleep", group.pauses.append)
    make = os.urandom
    monkeypatch.setattr(module.secrets, "token_bytes", lambda count: group.keys.append(make(count)) or group.keys[-1])
    group.begin({})
    return group


def looks(count: int):
    return iter([True] * count + [False]).__next__


def test_when_one_has_ended_all_are_ended_and_begin_anew_with_another_key(group, capsys):
    assert (group.server, group.started) == ("http://127.0.0.1:8123", 1)
    group._actors[1].ended.append(-9)  # the follower was killed
    group.keep({}, looks(3))
    assert group.started == 2
    assert len(set(group.keys)) == 2
    for actor in group._actors:
        assert actor.calls.count("end") == 1
        assert actor.calls.count("start") == 2
    assert "[None, -9]" in (said := capsys.readouterr().err)
    assert "Out of disk." in said
    assert group.close() == [0, 0]


def test_a_group_that_keeps_failing_begins_anew_less_and_less_often(group):
    for actor in group._actors:
        actor.asked = lambda name, actor=actor: 1 if name == "status" else Actor.asked(actor, name)
    group.keep({}, looks(9))
    assert [each for index, each in enumerate(group.pauses) if index % 2 == 0] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_lost_machine_is_waited_for_and_its_group_ends_whole(group):
    group._actors[1].gone = 6  # its status, its words, two starts and what ends them
    group.keep({}, looks(3))
    assert group.started == 2
    assert len(set(group.keys)) == len(group.keys) == 4, "none that a host of another beginning has"
    assert group._actors[0].calls.count("end") == 3, "what had begun without the other one was ended"
    group._actors[0].gone = 1
    assert group.close() == ["lost", 0]


def test_a_machine_that_never_comes_back_is_an_error(group, monkeypatch):
    monkeypatch.setattr(module, "PLACED", -1.0)
    group._actors[0].gone = 9
    with pytest.raises(HostLostError, match="did not find another place for a host"):
        group.begin({})


def test_without_ray_it_says_how_to_have_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InstallationError, match=r"pip install 'langchain-gemma-jax\[ray\]'"), ray_hosts(HostsPlan()):
        pass
    assert 0 < free_pair("127.0.0.1") < 2**16 - 1


@pytest.mark.slow
@pytest.mark.skipif(not HAS_RAY, reason="the extra [ray]")
def test_two_hosts_serve_one_model_and_begin_anew_when_one_is_lost(tmp_path):
    short = tmp_path.parent / "r"  # sockets of Ray's have long names
    short.mkdir(exist_ok=True)
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT), "RAY_TMPDIR": "/tmp"}
    environment |= {"GEMMA_JAX_COMPILE_CACHE": str(short / "programs")}
    process = POPEN(
        [sys.executable, "-m", "tests.scale.ray_group"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def hears(beginning: str) -> str:
        for line in process.stdout:
            if line.startswith(("failed", beginning)):
                assert line.startswith(beginning), line
                return line.strip()
        raise AssertionError("it ended")

    def tell(what: str) -> None:
        process.stdin.write(f"{what}\n")
        process.stdin.flush()

    try:
        said = []
        for what in ("kill", "lose", "end"):
            server = hears("http://")
            said.append(ChatGemmaJax(server=server, temperature=0, max_tokens=8, timeout=200).invoke("Hello!").text)
            tell(what)
        assert len(set(said)) == 1
        assert hears("ended") == "ended [0, 0]"
    finally:
        process.kill()
        process.communicate()
