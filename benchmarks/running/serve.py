"""A measured process: it prepares one engine, then runs a round each time that it is asked to.

The process is given its ``Job`` as JSON in its first argument. It answers in lines of JSON: first what
it is, then, for each line that it reads, what a round took. It ends when its input does.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from benchmarks.work.workload import DECODE, MODEL, PROMPT, READS, prompt_ids

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Answer: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True)
class Job:
    """The work that a process is to measure."""

    dtype: str
    threads: int
    folder: str  # where the checkpoints are
    model: str = MODEL
    prompt: str = ""  # a file with ids as JSON, for who reads real text
    keeps_programs: bool = False  # what was compiled once is found again in ``folder``: where starting is not timed
    far: bool = False  # where it is measured on long contexts, and with several conversations, too
    objects: bool = False  # where it is measured under a grammar too
    lengths: Sequence[int] = ()  # of a conversation that grows, where it is measured at these
    talks: bool = True  # where there is a conversation beside reading and decoding: not with what is too large for it

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(self.lengths))  # JSON makes lists of them

    @property
    def checkpoint(self) -> Path:
        return Path(self.folder, self.dtype)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Engine(Protocol):
    """A model that reads a prompt and decodes greedily, one row."""

    facts: Answer
    """Versions, and whatever else the report shows of it."""
    prompt_lengths: Sequence[int]
    """The prompts that it can be given; the last one is decoded from."""

    def forget(self) -> None:
        """Make ready for a new prompt. Not timed."""

    def read(self, prompt: Sequence[int]) -> int:
        """Read a prompt; give the likeliest next token once it is known."""

    def decode(self, count: int) -> list[int]:
        """Decode ``count`` tokens behind the last one given; give them once all are known."""


def serve(start: Callable[[Job], tuple[Answer, Callable[[], Answer]]]) -> None:
    """Answer the process that started this one. ``start`` gives the facts, and what runs a round."""
    # Libraries print what they like on standard output. The answers get a channel of their own.
    with os.fdopen(os.dup(1), "w", buffering=1) as answers:
        os.dup2(2, 1)
        job = Job(**json.loads(sys.argv[1]))
        keep_to(job.threads)
        facts, run_round = start(job)
        print(json.dumps(facts), file=answers)
        for _ in sys.stdin:
            print(json.dumps(run_round()), file=answers)


def serve_engine(make: Callable[[Job], Engine]) -> None:
    """``serve`` for an engine: made, warmed up, and timed."""

    def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
        engine = make(job)
        warm_up(engine)
        return engine.facts, lambda: time_round(engine)

    serve(start)


def keep_to(threads: int) -> None:
    """Run on so many cores. XLA takes as many threads as it may use cores, and has no other setting for it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def warm_up(engine: Engine, text: Sequence[int] = ()) -> None:
    """Run everything once, so that nothing is compiled, allocated or read from disk later."""
    prompt = text or prompt_ids()
    for length in engine.prompt_lengths:
        engine.forget()
        engine.read(prompt[:length])
    engine.decode(2)


def time_round(engine: Engine, text: Sequence[int] = ()) -> Answer:
    """Seconds for each read and for one decoded token, and the tokens. ``text``: what is read, if not random ids."""
    if engine.prompt_lengths[-1] != PROMPT:
        raise ValueError(f"decoding starts behind {PROMPT} tokens, and the last prompt has {engine.prompt_lengths[-1]}")
    prompt, prefill = text or prompt_ids(), dict[str, list[float]]()
    first = -1
    # Not timed: an engine that waited for its turn may find that its pages or its clock frequency are gone.
    engine.forget()
    engine.read(prompt[: engine.prompt_lengths[-1]])
    for length in engine.prompt_lengths:
        for _ in range(READS):
            engine.forget()
            began = time.perf_counter()
            first = engine.read(prompt[:length])
            prefill.setdefault(str(length), []).append(time.perf_counter() - began)
    began = time.perf_counter()
    rest = engine.decode(DECODE)
    decode = (time.perf_counter() - began) / DECODE
    return {"prefill": prefill, "decode": decode, "tokens": [first, *rest][:DECODE]}
