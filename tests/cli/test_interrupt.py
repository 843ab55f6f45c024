"""Ctrl-C at a real terminal, whose driver sends the signal: it stops the answer, and not the program."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from langchain_gemma_jax.cli.terminal.interruptible import Interruptible
from langchain_gemma_jax.errors import InputError

ROOT = Path(__file__).parents[2]
TOOLS = '''
import time
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    time.sleep(600)
'''
OPTIONS = ["--model", "sprout-s", "--temperature", "0", "--tools", "my_tools.py", "--history", "h.json"]
# A process is interrupted by the terminal that is its own.
AT_ITS_TERMINAL = (
    "import fcntl, runpy, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "runpy.run_module('langchain_gemma_jax.cli', run_name='__main__')"
)


def test_whoever_waits_is_interrupted_and_the_work_ends_with_its_next_result():
    goes_on, ended, made = threading.Event(), threading.Event(), []

    def work() -> Iterator[int]:
        try:
            for number in range(1000):
                made.append(number)
                yield number
                if number == 1:
                    assert goes_on.wait(30)
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
    assert ended.wait(30)
    assert found == [0, 1]
    assert made == [0, 1, 2]

    def fail() -> Iterator[int]:
        yield 1
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        list(Interruptible(fail))
    assert list(Interruptible(lambda: [1, 2])) == [1, 2]


class Person:
    """Somebody at a terminal, who types, and waits until something is shown."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.shown, self._seen = "", 0
        self._fd, other = pty.openpty()
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
        environment |= {"GEMMA_JAX_COMPILE_CACHE": str(folder / "programs")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", AT_ITS_TERMINAL, *arguments], cwd=folder, env=environment,
            stdin=other, stdout=other, stderr=other, start_new_session=True,
        )  # fmt: skip
        os.close(other)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def waits_for(self, words: str, seconds: float = 120.0) -> None:
        until = time.monotonic() + seconds
        while (found := self.shown.find(words, self._seen)) < 0:
            assert time.monotonic() < until, f"{words!r} was not shown, but: {self.shown[self._seen :]!r}"
            time.sleep(0.02)
        self._seen = found + len(words)

    def ends(self) -> int:
        status = self.process.wait(60)
        self._reader.join(10)
        os.close(self._fd)
        return status

    def _read(self) -> None:
        try:
            while part := os.read(self._fd, 65536):
                self.shown += part.decode(errors="replace")
        except OSError:  # the process has ended
            return


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
    time.sleep(0.3)
    person.type("\x03")  # the model is being loaded
    person.waits_for("(stopped)")
    person.type("What is the weather in Oslo?\n")
    person.waits_for("> ")  # the line's echo; then the tool runs, for ten minutes
    time.sleep(20)
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
