"""llama.cpp in a conversation of ten growing turns; runs in an environment of its own, .envs/llama."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import llama_cpp
import numpy as np

from benchmarks.work.growing_turns import ANSWER, FILE, prompts


def turns() -> Iterator[tuple[float]]:
    """Seconds of each turn: it reads what is new, as its own prefix cache has it."""
    threads = len(os.sched_getaffinity(0))
    model = llama_cpp.Llama(
        str(FILE), n_ctx=4096, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False
    )
    token = None
    for new in prompts():
        began = time.perf_counter()
        model.eval(new if token is None else [token, *new])
        for left in range(ANSWER, 0, -1):
            scores = llama_cpp.llama_get_logits_ith(model.ctx, -1)
            token = int(np.argmax(np.ctypeslib.as_array(scores, (model.n_vocab(),))))
            if left > 1:
                model.eval([token])
        yield (time.perf_counter() - began,)


if __name__ == "__main__":
    print(json.dumps(list(turns())))
