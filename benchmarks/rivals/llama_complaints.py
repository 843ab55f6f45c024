"""llama.cpp about three complaints: the file as it is, with the cache that a server of its own would give it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import llama_cpp

from benchmarks.complaints.complaints_work import CAPACITY, serve_reader
from benchmarks.rivals.llama import VERSION, likeliest_after
from benchmarks.running.serve import Answer, Job


class LlamaReader:
    """One context, which keeps what it has read. It has no room for anything behind CAPACITY."""

    def __init__(self, job: Job) -> None:
        path = str(Path(job.folder, job.model))
        threads = {"n_threads": job.threads, "n_threads_batch": job.threads}
        self._llama = llama_cpp.Llama(path, n_ctx=CAPACITY, n_batch=512, swa_full=False, verbose=False, **threads)
        self.facts: Answer = {"version": VERSION}

    def forget(self) -> None:
        self._llama.reset()

    def first(self, context: Sequence[int]) -> int:
        return likeliest_after(self._llama, context[self._llama.n_tokens :])


if __name__ == "__main__":
    serve_reader(lambda _: None, LlamaReader)
