"""llama.cpp as an engine, through its Python binding, on a GGUF file of the same weights."""

from __future__ import annotations

from collections.abc import Sequence

import llama_cpp
import numpy as np

from benchmarks.rivals.gguf_file import write_gguf
from benchmarks.running.serve import Answer, Job, serve_engine
from benchmarks.work.workload import CAPACITY, LONG_PROMPT, PROMPT

VERSION = f"llama-cpp-python {llama_cpp.__version__}"


class LlamaCpp:
    """A context of the same capacity; a whole prompt is one batch."""

    prompt_lengths: Sequence[int] = (LONG_PROMPT, PROMPT)

    def __init__(self, llama: llama_cpp.Llama) -> None:
        self.llama, self._token = llama, 0
        self.facts: Answer = {"version": VERSION}

    def forget(self) -> None:
        self.llama.reset()

    def read(self, prompt: Sequence[int]) -> int:
        self._token = likeliest_after(self.llama, prompt)
        return self._token

    def decode(self, count: int) -> list[int]:
        return [self.read([self._token]) for _ in range(count)]


def open_llama(job: Job, **options: int | bool) -> llama_cpp.Llama:
    """The job's weights, as a file that is written the first time."""
    path = job.checkpoint.with_suffix(".gguf")
    if not path.exists():
        write_gguf(job.checkpoint.with_name("float32"), path, job.dtype)
    return llama_cpp.Llama(str(path), n_threads=job.threads, n_threads_batch=job.threads, verbose=False, **options)


def likeliest_after(llama: llama_cpp.Llama, tokens: Sequence[int]) -> int:
    """Read tokens behind those that were read before; give the likeliest next one."""
    llama.eval(tokens)
    scores = llama_cpp.llama_get_logits_ith(llama.ctx, -1)
    return int(np.argmax(np.ctypeslib.as_array(scores, (llama.n_vocab(),))))


def alone(job: Job) -> LlamaCpp:
    """The engine that a job asks for."""
    # Its usual cache is float16. In float32 the tokens are compared, so there the cache is exact too.
    kv = llama_cpp.GGML_TYPE_F32 if job.dtype == "float32" else llama_cpp.GGML_TYPE_F16
    return LlamaCpp(open_llama(job, n_ctx=CAPACITY, n_batch=CAPACITY, n_ubatch=CAPACITY, type_k=kv, type_v=kv))


if __name__ == "__main__":
    serve_engine(alone)
