"""Several processes that have one model together: they answer as one, and the end of one is the end of all."""

from __future__ import annotations

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from langchain_gemma_jax import GemmaJaxError, HostLostError
from langchain_gemma_jax.compile_cache.entry import HEAD, peek
from tests.scale.host_group import HostGroup, host_group
from tests.waiting import until

pytestmark = pytest.mark.timeout(600)

ASKED = ["What is a ring buffer?", "Name a color.", "Count from one to ten.", "Who wrote the play about the prince?"]

SCHEMA = {"title": "Reply", "type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}


def talks(group: HostGroup) -> list[str]:
    """Several conversations at once, of two turns each: the second reuses what the first one left."""
    llm = group.chat()

    def talk(asked: str) -> str:
        first = str(llm.invoke(asked).content)
        return first + str(llm.invoke([("user", asked), ("assistant", first), ("user", "Say more.")]).content)

    held = group.chat(max_tokens=60).with_structured_output(SCHEMA)  # to what a grammar allows, in every step
    sure = group.chat(logprobs=True, top_logprobs=2).invoke("Hello!").response_metadata["logprobs"]["content"]
    with ThreadPoolExecutor(len(ASKED)) as threads:
        said = list(threads.map(talk, ASKED))
    return [*said, str(held.invoke("Is this a yes?")), str([each["token"] for each in sure])]


@pytest.mark.long
@pytest.mark.parametrize(("hosts", "devices"), [(2, 4), pytest.param(4, 2, marks=pytest.mark.slow)])
def test_several_hosts_say_what_one_says(tmp_path, hosts, devices):
    pytest.importorskip("uvicorn", reason="the extra [serve]")
    with host_group(tmp_path / "one", 1, hosts * devices) as one:
        expected = talks(one)
        assert one.end() == [0]
    with host_group(tmp_path / "several", hosts, devices) as several:
        assert talks(several) == expected
        assert several.end() == [0] * hosts  # all of them end with their leader
    assert all(len(answer) > 10 for answer in expected)


@pytest.mark.slow
def test_each_host_keeps_its_programs_and_a_second_start_compiles_nothing(tmp_path):
    pytest.importorskip("uvicorn", reason="the extra [serve]")
    (programs := tmp_path / "programs").mkdir(mode=0o700)  # one folder for both, as with one home on several hosts
    with host_group(tmp_path / "first", 2, 2, programs=programs, warm=True) as first:
        expected = talks(first)
        # Who leads is ready when it has all of them; who follows may still be making some.
        until(lambda: first.ready() and len({*map(frozenset, of_each_host(programs).values())}) == 1)
        assert first.end() == [0, 0]
    kept = of_each_host(programs)
    assert len(kept) == 2, "a name of its own for each host's half of a program"
    written = [path for paths in kept.values() for path in paths.values()]
    assert len(written) > 10
    for path in written:
        os.utime(path, ns=(0, path.stat().st_mtime_ns))  # as if nobody had read it since
    inodes = [path.stat().st_ino for path in written]
    with host_group(tmp_path / "second", 2, 2, programs=programs, warm=True) as second:
        assert talks(second) == expected
        until(lambda: all(path.stat().st_atime_ns for path in written))  # each is read again
        assert second.end() == [0, 0]
    assert [path.stat().st_ino for path in written] == inodes, "what is compiled again is written again"
    assert of_each_host(programs) == kept


def of_each_host(programs: Path) -> dict[str, dict[str, Path]]:
    """The programs that each host has kept: their keys and files, by what is the same in all of its names."""
    found: dict[str, dict[str, Path]] = {}
    for path in programs.glob("*/*/*.entry"):
        kind, _, rest = peek(path.read_bytes()[:HEAD])[0].partition("/")
        if kind == "program":
            family, _, key = rest.partition("/")
            found.setdefault(family, {})[key] = path
    return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Where all groups keep what they compile."""
    found = tmp_path_factory.mktemp("programs")
    found.chmod(0o700)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_the_end_of_one_host_is_told_to_all_who_wait(tmp_path, programs, seed):
    pytest.importorskip("uvicorn", reason="the extra [serve]")
    rng = random.Random(seed)
    in_common = {"programs": programs}  # who is killed while it writes them leaves nothing that others would read
    with host_group(tmp_path / "group", 2, 4, **in_common) as group, ThreadPoolExecutor(3) as threads:
        group.chat(max_tokens=1).invoke("Hello")  # by which a client learns that it is a group
        waiting = [threads.submit(until_it_fails, group) for _ in range(3)]
        time.sleep(rng.uniform(0, 12))
        victim = group.processes[seed % 2]
        os.kill(victim.pid, signal.SIGKILL)
        for each in waiting:
            error = each.result()
            assert isinstance(error, GemmaJaxError), error
            assert error.is_retryable
            lost = isinstance(error, HostLostError)  # whichever host it was; unless that was between two of its calls
            assert lost or str(error).startswith("No engine answers"), error
        ended = group.ended()
        assert ended[seed % 2] == -signal.SIGKILL
        assert ended[1 - seed % 2] not in {0, -signal.SIGKILL}  # so that who keeps the group alive begins it again
        assert list(Path(tmp_path / "group").glob("*.sock")) == [] or seed % 2 == 0


def until_it_fails(group: HostGroup) -> BaseException:
    """Ask again and again. Gives the error that ends it."""
    llm = group.chat(max_tokens=200)
    while True:
        try:
            for _ in llm.stream("Tell me a long story."):
                pass
        except Exception as error:  # noqa: BLE001  which one is what the test looks at
            return error


@pytest.mark.slow
def test_a_host_that_hangs_is_as_good_as_lost(tmp_path):
    pytest.importorskip("uvicorn", reason="the extra [serve]")
    with host_group(tmp_path / "group", 2, 2) as group, ThreadPoolExecutor(1) as threads:
        group.chat().invoke("Hello")
        waiting = threads.submit(until_it_fails, group)
        time.sleep(1)
        os.kill(group.processes[1].pid, signal.SIGSTOP)
        error = waiting.result()
        assert "Host 1 of the group is lost" in str(error)
        assert group.processes[0].wait() == 2
        os.kill(group.processes[1].pid, signal.SIGCONT)
        assert group.processes[1].wait() != 0
