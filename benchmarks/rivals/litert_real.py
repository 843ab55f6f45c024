"""LiteRT-LM on a file. It opens files of its own format alone, so for a GGUF file it says that it cannot.

Driven with its CPU backend in the job's threads. A converted model would be a copy in another format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import litert_lm

from benchmarks.rivals.whole_answers import serve_answers
from benchmarks.running.serve import Answer, Job


class LiteRt:
    """The file, if it opens."""

    def __init__(self, job: Job) -> None:
        backend = litert_lm.Backend.CPU(thread_count=job.threads)
        path = os.path.relpath(Path(job.folder, job.model))  # its error repeats the path, and reports repeat that
        self._engine = litert_lm.Engine(path, backend=backend)
        self.facts: Answer = {
            "version": f"litert-lm-api {version('litert-lm-api')}",
            "driven": f"{job.threads} threads, its CPU backend",
            "computes with": "a copy in its own format",
        }

    def prepared(self, prompt: Sequence[int]) -> Sequence[int]:
        return prompt

    def answer(self, prompt: Sequence[int], tokens: int) -> Sequence[int]:
        raise NotImplementedError(
            f"{len(prompt)} ids, {tokens} tokens: no file that it opens was at hand to drive it with."
        )


if __name__ == "__main__":
    serve_answers(LiteRt)
