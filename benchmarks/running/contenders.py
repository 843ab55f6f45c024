"""The engines of a benchmark, each in a process of its own, taking turns."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.running.figures import Figures
from benchmarks.running.process import ROUND_SECONDS, START_SECONDS, EngineFailedError, EngineProcess
from benchmarks.running.serve import Job
from benchmarks.work.checkpoint import ensure_checkpoints

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "bench"
ENVIRONMENTS = ROOT / os.environ.get("ENVS", ".envs")  # where ``scripts/reference_env`` makes those of rivals
# On a busy machine a conversation of transformers' takes minutes, and so do the programs of all our ladders.
PATIENT: dict[str, Any] = {"start_seconds": 1200.0, "round_seconds": 900.0}


@dataclass(frozen=True)
class Contender:
    """An engine: the module that runs it, and the Python that has its libraries."""

    name: str
    module: str
    environment: str | None = None  # below ENVIRONMENTS; None: this Python
    start_seconds: float = START_SECONDS  # ... and it has failed
    round_seconds: float = ROUND_SECONDS

    @property
    def python(self) -> Path:
        if self.environment is None:
            return Path(sys.executable)
        return ENVIRONMENTS / self.environment / "bin" / "python"


def prepare() -> Path:
    """The folder of the checkpoints. What this package remembered of the machine is forgotten, and probed anew."""
    say("making the checkpoints")
    folder = ensure_checkpoints(FOLDER)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return folder


def rivals_of(contenders: Sequence[Contender]) -> Mapping[str, str]:
    """The names of those that need an environment of their own, by its name."""
    return {each.environment: each.name for each in contenders if each.environment is not None}


def measure(contenders: Sequence[Contender], chosen: Sequence[str], job: Job, rounds: int) -> dict[str, Figures]:
    """The figures of our own engines and of the chosen rivals; those left out say so."""
    found = in_turn([each for each in contenders if each.environment in {None, *chosen}], job, rounds)
    return {each.name: found.get(each.name, Figures(problem="left out (--rivals)")) for each in contenders}


def in_turn(contenders: Sequence[Contender], job: Job, rounds: int) -> dict[str, Figures]:
    """Start every engine, then run round after round of all of them. One that fails stops; the others go on."""
    found = {contender.name: Figures() for contender in contenders}
    running: list[tuple[Contender, EngineProcess]] = []
    with ExitStack() as stack:
        for contender in contenders:
            say(f"{job.dtype}: starting {contender.name}")
            with noting(found[contender.name]):
                process = stack.enter_context(start(contender, job))
                running.append((contender, process))
                found[contender.name].facts = process.facts
        for number in range(rounds):
            say(f"{job.dtype}: round {number + 1} of {rounds}")
            for contender, process in running:
                figures = found[contender.name]
                if figures.problem is None:
                    with noting(figures):
                        figures.rounds.append(process.round(contender.round_seconds))
    return found


def start(contender: Contender, job: Job) -> EngineProcess:
    """The engine's process, ready for its first round."""
    if not contender.python.exists():
        raise EngineFailedError(f".envs/{contender.environment} is absent (--setup makes it)")
    which = contender.module if contender.environment is None else f"{contender.module}-{contender.environment}"
    log = FOLDER / "logs" / f"{which}-{job.model}-{job.dtype}.log"
    return EngineProcess(contender.python, contender.module, job, log, contender.start_seconds)


@contextmanager
def noting(figures: Figures) -> Iterator[None]:
    """An engine's failure is a result too."""
    try:
        yield
    except EngineFailedError as error:
        figures.problem = str(error)
        say(f"failed: {error}")


def say(text: str) -> None:
    """Tell whoever waits."""
    print(f"... {text}", file=sys.stderr, flush=True)
