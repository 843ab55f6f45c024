"""The state that a process has from the one that it was forked from. Forks: tests/engine/api/test_process.py."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from langchain_gemma_jax import ancestry as module
from langchain_gemma_jax.ancestry import Ancestry
from langchain_gemma_jax.errors import ForkedError


@pytest.fixture
def jax_is(monkeypatch):
    """``jax_is(backends={...}, busy=True)``: what the module of JAX's backends looks like, or that there is none."""

    def jax_is(backends=None, *, busy=False, imported=True):
        lock = threading.Lock()
        if busy:
            lock.acquire()
        stand_in = SimpleNamespace(_backends=backends or {}, _backend_lock=lock) if imported else None
        monkeypatch.setitem(module.sys.modules, module._BACKENDS, stand_in)

    jax_is(imported=False)
    return jax_is


@pytest.fixture
def tasks(monkeypatch, tmp_path):
    """``tasks(n)``: as if the system knew n threads that are not Python's, beside Python's own."""

    def tasks(others=0):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        own = {thread.native_id for thread in threading.enumerate()} | {threading.get_native_id()}
        for number in [*own, *(10**8 + number for number in range(others))]:
            (folder / str(number)).touch()
        monkeypatch.setattr(module, "_TASKS", folder)

    tasks()
    return tasks


def refused(ancestry):
    try:
        ancestry.refuse_forked()
    except ForkedError as error:
        assert "spawn" in str(error)  # noqa: PT017  what to do
        return True
    return False


def test_a_process_that_used_nothing_may_fork_and_go_on(jax_is, tasks):
    ancestry = Ancestry()
    assert not refused(ancestry)
    ancestry.after_fork()
    assert not refused(ancestry)


def test_a_child_of_one_that_had_an_engine_is_refused_and_so_are_its_own_children(jax_is, tasks):
    ancestry = Ancestry()
    ancestry.note_engine()
    assert not refused(ancestry), "the one that has it goes on"
    ancestry.after_fork()
    assert refused(ancestry)
    ancestry.after_fork()
    assert refused(ancestry)


@pytest.mark.parametrize("state", [{"backends": {"cpu": 1}}, {"busy": True}], ids=["there", "being made"])
def test_a_child_of_one_whose_backends_were_there_or_just_being_made_is_refused(jax_is, tasks, state):
    ancestry = Ancestry()
    jax_is(**state)
    assert not refused(ancestry)
    ancestry.after_fork()
    assert refused(ancestry)


def test_a_fork_that_python_was_not_told_of_is_seen_by_the_processs_number(jax_is, tasks, monkeypatch):
    ancestry = Ancestry()
    ancestry.note_engine()
    own = os.getpid()
    monkeypatch.setattr(module.os, "getpid", lambda: own + 1)
    assert refused(ancestry)


def test_who_imports_the_package_behind_a_fork_sees_backends_without_their_threads(jax_is, tasks, monkeypatch):
    jax_is(backends={"cpu": 1})
    assert refused(Ancestry()), "every thread is Python's own"
    tasks(others=1)
    assert not refused(Ancestry()), "XLA's are there"
    monkeypatch.setattr(module, "_TASKS", module._TASKS / "nowhere")
    assert not refused(Ancestry()), "where the system does not tell, nobody is refused"
    jax_is(backends={})
    tasks()
    assert not refused(Ancestry())


AT_THE_END = """
from langchain_gemma_jax import ChatGemmaJax, GemmaJaxEmbeddings, GemmaJaxLLM

class Asks:
    def __init__(self, ask):
        self.ask = ask

    def __del__(self, print=print, type=type):
        try:
            self.ask("Hello")
        except Exception as error:
            print(type(error).__name__, error)

chat, text = Asks(ChatGemmaJax(model="sprout-s").invoke), Asks(GemmaJaxLLM(model="sprout-s").invoke)
vectors = Asks(GemmaJaxEmbeddings(model="sprout-s").embed_query)
"""


@pytest.mark.long
def test_a_call_while_python_is_taken_down_is_refused_in_words():
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END], capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False
    )
    lines = done.stdout.splitlines()
    assert [line.startswith("ClosedError This process is ending") for line in lines] == [True] * 3, done
    assert (done.returncode, done.stderr) == (0, "")
