"""Runs Python files, each in a process of its own that begins with what most of them import.

Importing JAX and LangChain takes longer than most examples do. A process that has imported both, and used neither, is
forked for each file. It has the file's folder first on its path, as Python has, and ends as Python does.

    with ExampleRunner(environment) as runner:
        done = runner.run(file, folder)
"""

from __future__ import annotations

import json
import os
import runpy
import select
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Self

IMPORTED = ("jax", "jax.numpy", "langchain_core.messages", "langchain_gemma_jax.chat_model")


@dataclass(frozen=True)
class Done:
    """How a file ended, and what it printed."""

    status: int
    out: str
    err: str


class ExampleRunner:
    """The process that is forked. ``with`` ends it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, file: Path, folder: Path, seconds: float) -> Done:
        """Run a file in a folder, which keeps what it prints.

        Raises:
            TimeoutError: it takes longer than so many seconds.
        """
        self._process.stdin.write(json.dumps([str(file), str(folder)]) + "\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            self._process.kill()
            raise TimeoutError(f"{file} takes longer than {seconds} s. It printed: {(folder / 'out').read_text()}")
        status = int(self._process.stdout.readline())
        return Done(status, (folder / "out").read_text(), (folder / "err").read_text())


def serve() -> None:
    """Run the files that standard input names, one after the other."""
    for name in IMPORTED:
        import_module(name)
    for line in sys.stdin:
        file, folder = json.loads(line)
        child = os.fork()
        if child == 0:
            become(file, folder)
            return
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def become(file: str, folder: str) -> None:
    """Run a file in this process."""
    os.chdir(folder)
    for stream, name in ((sys.stdout, "out"), (sys.stderr, "err")):
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(fd, stream.fileno())
        os.close(fd)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv, sys.path[0] = [file], str(Path(file).parent)
    runpy.run_path(file, run_name="__main__")


if __name__ == "__main__":
    serve()
