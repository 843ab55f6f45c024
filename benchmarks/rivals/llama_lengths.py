"""llama.cpp on one conversation that grows to a very long one, by the better of its ways to attend."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import llama_cpp

from benchmarks.rivals.llama import VERSION
from benchmarks.rivals.llama_conversation import Continuing
from benchmarks.rivals.llama_real import opened
from benchmarks.running.serve import Answer, Job, serve
from benchmarks.work.context_lengths import ROOM, time_lengths


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Open the file. ``job.dtype``: "int8" is its own cache of eight bits, which needs its flash attention."""
    path, text = Path(job.folder, job.model), json.loads(Path(job.prompt).read_text())
    small = job.dtype == "int8"
    kind = llama_cpp.GGML_TYPE_Q8_0 if small else llama_cpp.GGML_TYPE_F16
    llama = opened(
        path,
        job.threads,
        n_ctx=max(job.lengths) + ROOM,
        n_batch=512,
        n_ubatch=512,
        swa_full=False,
        flash_attn=small,
        type_k=kind,
        type_v=kind,
    )

    def held() -> int:
        return int(llama_cpp.llama_state_seq_get_size(llama.ctx, 0))

    return {"version": VERSION}, lambda: time_lengths(Continuing(llama), text, job.lengths, held)


if __name__ == "__main__":
    serve(start)
