"""A fresh process with a GGUF file, which says when it got where and how much memory it has: for ``packed.py``.

    python benchmarks/start/packed_process.py ours FILE
    python benchmarks/start/packed_process.py briefly FILE
    python benchmarks/start/packed_process.py llama FILE
    python benchmarks/start/packed_process.py dense FOLDER
    python benchmarks/start/packed_process.py transformers FOLDER

The first request has 200 tokens and 16 of answer; ``ours`` and ``llama`` then hold ten growing turns. Each figure is
printed as soon as it is there; the process then waits for its input to end, so that another one can be measured beside
it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.work.growing_turns import ANSWER, prompts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_gemma_jax import Engine, Served

PROMPT, SHORT = 200, 16  # tokens of the first request, and of its answer
REST = 2.0  # seconds without work, as an agent's process is most of the time
FIRST = [2, *(1000 + 37 * index for index in range(PROMPT - 1))]
Mark = Callable[..., None]


def ours(mark: Mark, file: str) -> None:
    """Run this package, with its defaults."""
    running, served = first_request(mark, file)
    from langchain_gemma_jax import Sampling

    context: list[int] = []
    for new in prompts():
        context += new
        done = running.submit(served, context, Sampling(temperature=0.0, max_tokens=ANSWER, ignore_eos=True)).result()
        context += done.ids
    time.sleep(REST)
    mark("ten turns", **memory())


def briefly(mark: Mark, file: str) -> None:
    """Run this package for the first request alone."""
    first_request(mark, file)
    time.sleep(REST)
    mark("the end", **memory())


def first_request(mark: Mark, file: str) -> tuple[Engine, Served]:
    """Load a model, and answer the first request."""
    import jax  # noqa: F401
    import langchain_core  # noqa: F401

    mark("imports")
    from langchain_gemma_jax import Sampling, engine

    running = engine()
    served = running.load(file)
    mark("weights")
    pieces = iter(running.submit(served, FIRST, Sampling(temperature=0.0, max_tokens=SHORT, ignore_eos=True)))
    next(pieces)
    mark("first token")
    for _ in pieces:
        pass
    mark("sixteenth")
    return running, served


def llama(mark: Mark, file: str) -> None:
    """llama.cpp by its Python package, on all cores."""
    import llama_cpp
    import numpy as np

    mark("imports")
    threads = len(os.sched_getaffinity(0))
    model = llama_cpp.Llama(file, n_ctx=4096, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False)
    mark("weights")

    def answers(ids: list[int], count: int) -> Iterator[int]:
        model.eval(ids)
        for left in range(count, 0, -1):
            scores = llama_cpp.llama_get_logits_ith(model.ctx, -1)
            token = int(np.argmax(np.ctypeslib.as_array(scores, (model.n_vocab(),))))
            yield token
            if left > 1:
                model.eval([token])

    for number, _ in enumerate(answers(FIRST, SHORT)):
        if number == 0:
            mark("first token")
    mark("sixteenth")
    model.reset()
    last: list[int] = []
    for new in prompts():
        last = list(answers([*last, *new], ANSWER))[-1:]
    mark("ten turns", **memory())


def dense(mark: Mark, folder: str) -> None:
    """Plain JAX on the same weights, dense: as ``cold_process.py`` has it."""
    from benchmarks.start import cold_process

    names = {"import": "imports", "answer": "sixteenth"}
    cold_process.TOKENS = SHORT
    cold_process.plain(lambda name: mark(names.get(name, name)), folder, "bfloat16", str(PROMPT))
    mark("the end", **memory())


def transformers(mark: Mark, folder: str) -> None:
    """Transformers on the same weights, dense."""
    import torch
    from transformers import AutoModelForCausalLM

    mark("imports")
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    mark("weights")
    with torch.inference_mode():
        done = model(torch.tensor([FIRST]), use_cache=True)
        mark("first token")
        for _ in range(SHORT - 1):
            done = model(done.logits[:, -1:].argmax(-1), past_key_values=done.past_key_values, use_cache=True)
        mark("sixteenth")
    mark("the end", **memory())


def memory() -> Mapping[str, int]:
    """Bytes of this process: resident; of those its own; and its share where pages are shared."""
    found = {"resident": 0, "private": 0, "share": 0}
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            found["resident" if name == "VmRSS" else "private"] = int(value.split()[0]) * 1024
    for line in Path("/proc/self/smaps_rollup").read_text("ascii").splitlines():
        if line.startswith("Pss:"):
            found["share"] = int(line.split()[1]) * 1024
    return found


def main(what: str, source: str) -> None:
    """Run one kind of process."""

    def mark(name: str, **more: int) -> None:
        print(json.dumps({"at": name, "clock": time.clock_gettime(time.CLOCK_MONOTONIC), **more}), flush=True)

    {"ours": ours, "briefly": briefly, "llama": llama, "dense": dense, "transformers": transformers}[what](mark, source)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
