"""Ctrl-C at a real terminal, whose driver sends the signal: it stops the answer, and not the program."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from langchain_gemma_jax.cli.terminal.interruptible import Interruptible
from langchain_gemma_jax.errors import InputError
from tests.cli.person import Person
from tests.waiting import until

TOOLS = '''
import time
from pathlib import Path
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    Path("called").touch()
    time.sleep(600)
'''
OPTIONS = ["--model", "sprout-s", "--temperature", "0", "--tools", "my_tools.py", "--history", "h.json"]


def test_whoever_waits_is_interrupted_and_the_work_ends_with_its_next_result():
    goes_on, ended, made = threading.Event(), threading.Event(), []

    def work() -> Iterator[int]:
        try:
            for number in range(1000):
                made.append(number)
                yield number
                if number == 1:
                    assert goes_on.wait(300)
        finally:
            ended.set()

    found = []

    def wait() -> None:
        for each in Interruptible(work):
            found.append(each)
            if each == 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wait()
    goes_on.set()
    assert ended.wait()
    assert found == [0, 1]
    assert made == [0, 1, 2]

    def fail() -> Iterator[int]:
        yield 1
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        list(Interruptible(fail))
    assert list(Interruptible(lambda: [1, 2])) == [1, 2]


@pytest.fixture
def person(tmp_path) -> Iterator[Person]:
    (tmp_path / "my_tools.py").write_text(TOOLS)
    made = Person(tmp_path, "chat", *OPTIONS)
    yield made
    made.process.kill()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_ctrl_c_stops_the_answer_and_not_the_program(person, tmp_path):
    person.waits_for("Ctrl-D ends.")
    person.waits_for("> ")
    person.type("half a line\x03")
    person.waits_for("Ctrl-D or /exit ends.")
    person.type("What is the weather in Oslo?\n")
    person.waits_for("Oslo?\r\n")  # the line was read
    time.sleep(0.3)
    person.type("\x03")  # the model is being loaded
    person.waits_for("(stopped)")
    person.type("What is the weather in Oslo?\n")
    until((tmp_path / "called").exists)  # the tool runs, for ten minutes
    person.type("\x03\x03")
    person.waits_for("(stopped)")
    person.type("Hello!\n")
    person.waits_for("How can I help")
    person.type("/report\n")
    person.waits_for("generated tokens")
    person.type("\x04")
    assert person.ends() == 0
    assert "Traceback" not in person.shown
    kept = (tmp_path / "h.json").read_text()
    assert "Hello!" in kept
    assert "Oslo" not in kept
