"""Hugging Face transformers on torch as an engine, as ``from_pretrained`` gives it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import transformers

from benchmarks.running.serve import Answer, Job, serve_engine
from benchmarks.work.workload import LONG_PROMPT, PROMPT


class Transformers:
    """A causal language model with its dynamic cache, stepped without the Python around ``generate``."""

    prompt_lengths: Sequence[int] = (LONG_PROMPT, PROMPT)

    def __init__(self, job: Job) -> None:
        torch.set_num_threads(job.threads)
        dtype = getattr(torch, job.dtype)
        self._model = transformers.AutoModelForCausalLM.from_pretrained(job.checkpoint, dtype=dtype).eval()
        self.forget()
        self.facts: Answer = {
            "version": f"transformers {transformers.__version__}, torch {torch.__version__}",
            "attention": self._model.config._attn_implementation,  # noqa: SLF001  there is no public name
        }

    def forget(self) -> None:
        self._cache = transformers.DynamicCache(config=self._model.config)

    @torch.inference_mode()
    def read(self, prompt: Sequence[int]) -> int:
        self._token = self._step(torch.tensor([prompt]))
        return int(self._token)

    @torch.inference_mode()
    def decode(self, count: int) -> list[int]:
        found = []
        for _ in range(count):
            self._token = self._step(self._token)
            found.append(int(self._token))
        return found

    def _step(self, ids: torch.Tensor) -> torch.Tensor:
        out = self._model(ids, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        return out.logits[:, -1].argmax(dim=-1, keepdim=True)


if __name__ == "__main__":
    serve_engine(Transformers)
