"""A person at a terminal of a process of its own, which runs ``gemma-jax``, for tests of what a user sees there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
# A process is interrupted by the terminal that is its own.
AT_ITS_TERMINAL = (
    "import fcntl, runpy, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "runpy.run_module('langchain_gemma_jax.cli', run_name='__main__')"
)


class Person:
    """A person at a terminal, who types, and waits until something is shown."""

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

    def waits_for(self, words: str) -> None:
        while (found := self.shown.find(words, self._seen)) < 0:
            time.sleep(0.02)
        self._seen = found + len(words)

    def ends(self) -> int:
        status = self.process.wait()
        self._reader.join()
        os.close(self._fd)
        return status

    def _read(self) -> None:
        try:
            while part := os.read(self._fd, 65536):
                self.shown += part.decode(errors="replace")
        except OSError:  # the process has ended
            return
