"""llama.cpp on a file: its evaluation alone, and in a conversation, on real text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import llama_cpp

from benchmarks.rivals.llama import VERSION, LlamaCpp
from benchmarks.rivals.llama_conversation import Continuing
from benchmarks.running.serve import Answer, Job, serve, time_round, warm_up
from benchmarks.work.conversation import CAPACITY, WARM_UP, hold, rounds


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Open the file twice: with a short context, and with one for the conversation."""
    path, text = Path(job.folder, job.model), json.loads(Path(job.prompt).read_text())
    alone = LlamaCpp(opened(path, job.threads, n_ctx=512, n_batch=512, n_ubatch=512))
    tiles = " with AMX" if b"AMX_INT8 = 1" in llama_cpp.llama_print_system_info() else ""
    facts: Answer = {
        "version": VERSION + tiles,
        "driven": f"{job.threads} threads{tiles}, batches of 512, float16 cache, its binding's attention",
        "computes with": "the file's own weights",
    }
    if not job.talks:
        warm_up(alone, text)
        return facts, lambda: time_round(alone, text)
    talking = Continuing(opened(path, job.threads, n_ctx=CAPACITY, n_batch=512, n_ubatch=512, swa_full=False))
    warm_up(alone, text)
    hold(talking, WARM_UP, count=2, text=text)
    return facts, rounds(lambda number: {**time_round(alone, text), "conversation": hold(talking, number, text=text)})


def opened(path: Path, threads: int, **options: int | bool) -> llama_cpp.Llama:
    """The file, as it is used when nobody says otherwise."""
    return llama_cpp.Llama(str(path), n_threads=threads, n_threads_batch=threads, verbose=False, **options)


if __name__ == "__main__":
    serve(start)
