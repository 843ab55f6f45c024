"""vLLM's CPU build on the dense folder that holds the same weights in bfloat16.

Driven with its compiler, in the job's threads, without kept beginnings. It opens no packed file here, so beside those
it computes with a copy in bfloat16, which is more bytes a token.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "HF_HUB_OFFLINE": "1"}

import vllm

from benchmarks.rivals.whole_answers import serve_answers
from benchmarks.running.serve import Answer, Job
from benchmarks.work.conversation import CAPACITY


class Vllm:
    """The folder, given ids and asked for ids."""

    def __init__(self, job: Job) -> None:
        folder = Path(job.folder, "bfloat16")
        if not job.model.startswith("gemma-3-270m") or not folder.exists():
            raise FileNotFoundError(
                f"Expected the dense weights of {job.model} in {folder}: only the real 270M has them."
            )
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        self._engine = vllm.LLM(
            str(folder), skip_tokenizer_init=True, dtype="bfloat16", max_model_len=CAPACITY, enable_prefix_caching=False
        )
        self.facts: Answer = {
            "version": f"vllm-cpu {vllm.__version__}",
            "driven": f"{job.threads} threads, compiled, bfloat16 cache",
            "computes with": "a copy in bfloat16",
        }

    def prepared(self, prompt: Sequence[int]) -> dict[str, list[int]]:
        return {"prompt_token_ids": list(prompt)}

    def loss(self, ids: Sequence[int]) -> float:
        """The loss on a page."""
        how = vllm.SamplingParams(max_tokens=1, temperature=0, prompt_logprobs=0, detokenize=False)
        (found,) = self._engine.generate([self.prepared(ids)], how, use_tqdm=False)
        each = [place[token].logprob for place, token in zip(found.prompt_logprobs[1:], ids[1:], strict=True)]
        return -sum(each) / len(each)

    def answer(self, prompt: dict[str, list[int]], tokens: int) -> Sequence[int]:
        how = vllm.SamplingParams(max_tokens=tokens, temperature=0, ignore_eos=True, detokenize=False)
        (found,) = self._engine.generate([prompt], how, use_tqdm=False)
        return list(found.outputs[0].token_ids)

    def together(self, prompts: list[list[int]], count: int) -> list[list[int]]:
        """The answers to several prompts at once."""
        how = vllm.SamplingParams(max_tokens=count, temperature=0, ignore_eos=True, detokenize=False)
        found = self._engine.generate([self.prepared(each) for each in prompts], how, use_tqdm=False)
        return [list(each.outputs[0].token_ids) for each in found]


if __name__ == "__main__":
    serve_answers(Vllm)
