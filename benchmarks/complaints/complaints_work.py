"""Work that three complaints are measured by, of any engine: loading, a tool's result, a long context.

Read in environments that have neither JAX nor this package: the standard library only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.running.serve import Answer, Job, serve

TOLD, RESULT, LONG = 2000, 50, 8000  # tokens: a conversation, what a tool adds to it, and a context that has grown long
CAPACITY = 8192  # for an engine that has to be told beforehand


class Reader(Protocol):
    """Something that reads contexts, each as an agent tells it: whole."""

    facts: Answer

    def forget(self) -> None:
        """Make ready for another conversation. Not timed."""

    def first(self, context: Sequence[int]) -> int:
        """The likeliest token behind a context."""


def serve_reader(imported: Callable[[Job], None], opened: Callable[[Job], Reader]) -> None:
    """Answer the process that started this one. Memory is counted from where the libraries are imported."""

    def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
        text: list[int] = json.loads(Path(job.prompt).read_text())
        imported(job)
        empty = resident_bytes()
        reader = opened(job)
        loaded = resident_bytes() - empty
        reader.first(text[: TOLD + RESULT])

        def run() -> Answer:
            reader.forget()
            reader.first(text[:TOLD])
            began = time.perf_counter()
            reader.first(text[: TOLD + RESULT])
            result = time.perf_counter() - began
            reader.forget()
            reader.first(text[:LONG])
            return {"result_s": result, "long_bytes": resident_bytes() - empty}

        return {**reader.facts, "loaded_bytes": loaded}, run

    serve(start)


def resident_bytes() -> int:
    """Return the bytes that this process has in memory, pages of files that it mapped among them."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
