"""ik_llama.cpp on a file: its evaluation alone, and in a conversation, on real text.

Driven by its library's own functions, with what its pages call fastest on a CPU: rows repacked as they are loaded,
flash attention, q, k and v as one product, a float16 cache and batches of 512. It computes with the file's own weights,
laid out anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ik_llama_cpp import _ctypes_api as api
from ik_llama_cpp._internals import make_batch_range

from benchmarks.rivals.ggml_rows import Rows
from benchmarks.running.serve import Answer, Job, serve, time_round, warm_up
from benchmarks.work import long_context
from benchmarks.work.conversation import CAPACITY, WARM_UP, hold, rounds
from benchmarks.work.page_loss import PAGE, mean_loss
from benchmarks.work.several import AT_ONCE, time_together
from benchmarks.work.workload import LONG_PROMPT, PROMPT

BATCH = 512


class IkLlama:
    """A context on the file; what was read stays in its cache until it is forgotten."""

    prompt_lengths: Sequence[int] = (LONG_PROMPT, PROMPT)

    def __init__(self, model: Any, threads: int, capacity: int, conversations: int = 1) -> None:
        settings = api.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = capacity, BATCH, BATCH
        settings.n_seq_max = conversations
        settings.n_threads = settings.n_threads_batch = threads
        # With several conversations in a batch it ends at an assertion of its own (iqk_fa_templates.h: S > 0).
        settings.flash_attn = conversations == 1
        self._context = api.llama_init_from_model(model, settings)
        if not self._context:
            raise RuntimeError(f"ik_llama.cpp made no context of {capacity} tokens.")
        self._words = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
        self._held = self._token = 0
        self.facts: Answer = {
            "version": f"ik-llama-cpp-python {version('ik-llama-cpp-python')}",
            "driven": f"{threads} threads, rows repacked at load, flash attention, float16 cache",
            "computes with": "the file's own weights",
        }

    @property
    def rows(self) -> Rows:
        """Return the context for several conversations in a step."""
        return Rows(api, self._context, self._words, self.forget)

    def forget(self) -> None:
        api.llama_kv_cache_clear(self._context)
        self._held = 0

    def read(self, prompt: Sequence[int]) -> int:
        for first in range(0, len(prompt), BATCH):
            batch = make_batch_range(list(prompt[first : first + BATCH]), pos_start=self._held, logits_last=True)
            status = api.llama_decode(self._context, batch)
            self._held += batch.n_tokens
            api.llama_batch_free(batch)
            if status:
                raise RuntimeError(f"llama_decode of {len(prompt)} tokens: expected the status 0, found {status}.")
        self._token = int(np.argmax(self._scores(-1)))
        return self._token

    def loss(self, ids: Sequence[int]) -> float:
        """The loss on a page, read as one batch."""
        self.forget()
        batch = make_batch_range(list(ids), pos_start=0)
        for place in range(len(ids)):
            batch.logits[place] = 1
        if status := api.llama_decode(self._context, batch):
            raise RuntimeError(f"llama_decode of {len(ids)} tokens: expected the status 0, found {status}.")
        found = mean_loss((self._scores(place) for place in range(len(ids) - 1)), ids)
        api.llama_batch_free(batch)
        self.forget()
        return found

    def _scores(self, place: int) -> npt.NDArray[np.float32]:
        return np.ctypeslib.as_array(api.llama_get_logits_ith(self._context, place), (self._words,))

    def decode(self, count: int) -> list[int]:
        return [self.read([self._token]) for _ in range(count)]

    def answer(self, context: Sequence[int], count: int) -> Iterator[int]:
        new = context[self._held :]
        for _ in range(count):
            new = (self.read(new),)
            yield new[0]


def opened(path: Path) -> Any:
    """The model in the file."""
    api.llama_backend_init()
    settings = api.llama_model_default_params()
    settings.repack_tensors = settings.merge_qkv = True
    settings.use_mmap = False  # rows that are repacked are not the file's pages
    model = api.llama_model_load_from_file(str(path).encode(), settings)
    if not model:
        raise RuntimeError(f"ik_llama.cpp cannot open {path}: its log says why.")
    return model


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Open the file, with a short context, and with one for the conversation."""
    text: list[int] = json.loads(Path(job.prompt).read_text())
    model = opened(Path(job.folder, job.model))
    alone = IkLlama(model, job.threads, 1024)
    warm_up(alone, text)
    if not job.talks:
        return alone.facts, lambda: time_round(alone, text)
    talking = IkLlama(model, job.threads, CAPACITY)
    hold(talking, WARM_UP, count=2, text=text)
    far = IkLlama(model, job.threads, long_context.CAPACITY) if job.far else None
    several = IkLlama(model, job.threads, max(AT_ONCE) * 128, conversations=max(AT_ONCE)).rows

    def run(number: int) -> Answer:
        spoken = hold(talking, number, text=text)
        found = {**time_round(alone, text), "conversation": spoken}
        if far is not None:
            found["long"] = long_context.time_long(far, number, text)
            found["together"] = time_together(several.decode, number, text)
        return found

    return {**alone.facts, "page loss": alone.loss(text[:PAGE])}, rounds(run)


if __name__ == "__main__":
    serve(start)
