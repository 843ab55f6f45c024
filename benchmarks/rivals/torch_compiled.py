"""transformers on torch, with ``torch.compile``: a static cache and compiled steps, as its ``generate`` has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
import transformers

from benchmarks.rivals.hf_conversation import Rereading
from benchmarks.rivals.torch_family import start_with
from benchmarks.running.serve import Answer, Job, serve
from benchmarks.work.conversation import CAPACITY


class Compiled(Rereading):
    """A cache of fixed size, and a step of one token that is compiled; prompts are read as they are."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._compiled = torch.compile(self._model.forward)
        self.facts = {**self.facts, "compiler": "inductor"}

    def forget(self) -> None:
        self._cache = transformers.StaticCache(config=self._model.config, max_cache_len=CAPACITY)

    @torch.inference_mode()
    def read(self, prompt: Sequence[int]) -> int:
        self._end = 0
        return super().read(prompt)

    def _step(self, ids: torch.Tensor) -> torch.Tensor:
        count = ids.shape[1]
        at = torch.arange(self._end, self._end + count)[None]
        self._end += count
        forward = self._compiled if count == 1 else self._model.forward
        out = forward(ids, position_ids=at, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        return out.logits[:, -1].argmax(dim=-1, keepdim=True)


start: Callable[[Job], tuple[Answer, Callable[[], Answer]]] = partial(start_with, Compiled)

if __name__ == "__main__":
    serve(start)
