"""transformers on torch, eager: its speeds, and a conversation in which each turn reads the whole prompt again."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.rivals.hf_conversation import Rereading
from benchmarks.running.serve import Answer, Job, serve, time_round, warm_up
from benchmarks.work.conversation import WARM_UP, hold, rounds


def start_with(make: Callable[[Job], Rereading], job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Make an engine and warm it up; give what a round is."""
    made = make(job)
    warm_up(made)
    hold(made, WARM_UP, count=6, until=2)
    return made.facts, rounds(lambda number: {**time_round(made), "conversation": hold(made, number)})


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """The engine as ``from_pretrained`` gives it."""
    return start_with(Rereading, job)


if __name__ == "__main__":
    serve(start)
