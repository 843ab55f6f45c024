"""Engines that give whole answers alone, timed by the difference between a long answer and a short one.

No two prompts begin alike, so that an engine that keeps beginnings, whatever it was told, reads each prompt.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from benchmarks.running.serve import Answer, Job, serve
from benchmarks.work.page_loss import PAGE
from benchmarks.work.several import time_together
from benchmarks.work.workload import DECODE, LONG_PROMPT, PROMPT, READS


class Answering(Protocol):
    """An engine that is given a prompt and gives a whole answer, greedily."""

    facts: Answer
    """Versions, how it is driven, and what it computes with."""

    def prepared(self, prompt: Sequence[int]) -> Any:
        """The prompt as the engine takes it. Not timed."""

    def answer(self, prompt: Any, tokens: int) -> Sequence[int]:
        """The answer's ids, as many as asked for, behind a prompt that was prepared."""


def serve_answers(make: Callable[[Job], Answering]) -> None:
    """``serve`` for such an engine: made, warmed up, and timed. It holds no conversation."""

    def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
        text: list[int] = json.loads(Path(job.prompt).read_text())
        made, prompts = make(job), unlike(text)
        for length in (LONG_PROMPT, PROMPT):
            timed(made, next(prompts)[:length], 2)
        tells = getattr(made, "loss", None)  # some tell no scores of what they read
        losses: Answer = {} if tells is None else {"page loss": tells(text[:PAGE])}
        together, numbers = getattr(made, "together", None), count()

        def run() -> Answer:
            found = time_answers(made, prompts)
            return found if together is None else {**found, "together": time_together(together, next(numbers), text)}

        return {**made.facts, **losses}, run

    serve(start)


def unlike(text: Sequence[int]) -> Iterator[list[int]]:
    """Prompts of the text's words: the first token stands before a place in it that moves on."""
    first, rest = text[0], text[1:]
    for turn in count():
        at = 17 * turn % len(rest)
        yield [first, *rest[at:], *rest[:at]]


def time_answers(engine: Answering, prompts: Iterator[list[int]]) -> Answer:
    """Seconds for each read and for one token behind the first, and the tokens of the last answer."""
    prefill: dict[str, list[float]] = {}
    for length in (LONG_PROMPT, PROMPT):
        for _ in range(READS):
            took, _ = timed(engine, next(prompts)[:length], 1)
            prefill.setdefault(str(length), []).append(took)
    one, _ = timed(engine, next(prompts)[:PROMPT], 1)
    both, tokens = timed(engine, next(prompts)[:PROMPT], 1 + DECODE)
    behind = max(both - one, 1e-9) / DECODE
    return {"prefill": prefill, "decode": behind, "tokens": tokens}


def timed(engine: Answering, prompt: Sequence[int], tokens: int) -> tuple[float, list[int]]:
    """Seconds of an answer, and its ids."""
    given = engine.prepared(prompt)
    began = time.perf_counter()
    found = list(engine.answer(given, tokens))
    took = time.perf_counter() - began
    return took, whole(found, prompt, tokens)


def whole(found: list[int], prompt: Sequence[int], tokens: int) -> list[int]:
    """The answer, which has to be as long as was asked for: a shorter one would look fast."""
    if len(found) != tokens:
        raise RuntimeError(f"Expected an answer of {tokens} tokens behind {len(prompt)}, found {len(found)}.")
    return found
