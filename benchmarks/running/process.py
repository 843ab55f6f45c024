"""The side of the measuring program: an engine in a process of its own, asked for one round at a time."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from benchmarks.running.serve import Answer, Job

ROOT = Path(__file__).parents[2]
START_SECONDS, ROUND_SECONDS = 300.0, 180.0
FOREIGN = ("JAX_", "XLA_", "OMP_", "HF_", "GGML_", "LLAMA_", "GEMMA_JAX_")
"""Settings of the caller's that would let engines run differently from one machine to the next."""


class EngineFailedError(RuntimeError):
    """An engine did not start, did not answer, or answered nonsense."""


class EngineProcess:
    """``python -m module`` with a job, from the repository's root.

        with EngineProcess(python, "benchmarks.forward.ours", job, log) as engine:
            engine.facts, engine.round()

    Whatever it says besides its answers goes to the file ``log``. It is gone when the block ends.
    """

    def __init__(self, python: Path, module: str, job: Job, log: Path, start_seconds: float = START_SECONDS) -> None:
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as messages:
            self._process = subprocess.Popen(
                [python, "-m", module, job.to_json()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                cwd=ROOT,
                env=environment(os.environ, job),
                text=True,
            )
        try:
            self.facts = self._answer(start_seconds)
        except BaseException:
            self.close()
            raise

    def round(self, seconds: float = ROUND_SECONDS) -> Answer:
        """Have a round run; give what it took."""
        if self._process.stdin is None:
            raise EngineFailedError("the engine has no input")
        try:
            self._process.stdin.write("round\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise EngineFailedError(f"it ended ({self._last_words()})") from error
        return self._answer(seconds)

    def _answer(self, seconds: float) -> Answer:
        if self._process.stdout is None:
            raise EngineFailedError("the engine has no output")
        late = threading.Event()

        def give_up() -> None:
            late.set()  # before its output ends, and is taken for an end of its own
            self._process.kill()

        timer = threading.Timer(seconds, give_up)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if late.is_set():
            raise EngineFailedError(f"no answer within {seconds:.0f} s")
        if not line:
            raise EngineFailedError(f"it ended ({self._last_words()})")
        try:
            return cast("Answer", json.loads(line))
        except ValueError as error:
            raise EngineFailedError(f"it answered {line.strip()!r}") from error

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):  # it says why after it has hung up
            self._process.wait(timeout=10)
        words = self._log.read_text(errors="replace").strip().splitlines()
        log = self._log.relative_to(ROOT) if self._log.is_relative_to(ROOT) else self._log
        return f"{words[-1].strip()[:200] if words else 'without a word'}; see {log}"

    def close(self) -> None:
        """End the process. May be called twice."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # a request that nobody read
                    stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def environment(inherited: Mapping[str, str], job: Job) -> dict[str, str]:
    """The variables of a measured process: on the CPU, offline, with a compilation cache only if the job keeps one."""
    kept = {name: value for name, value in inherited.items() if not name.startswith(FOREIGN)}
    return kept | {
        "CUDA_VISIBLE_DEVICES": "",
        "GEMMA_JAX_CACHE_DIR": str(Path(job.folder, "cache").resolve()),
        "HF_HUB_OFFLINE": "1",
        "JAX_ENABLE_COMPILATION_CACHE": str(job.keeps_programs).lower(),
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": str(job.threads),
        "OPENBLAS_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
