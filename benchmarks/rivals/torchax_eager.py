"""transformers on torchax without ``jit``: each operator is a call of JAX's, compiled anew for each shape it meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import transformers

from benchmarks.running.serve import Answer, Job, serve, time_round, warm_up
from benchmarks.work.workload import LONG_PROMPT, PROMPT
from langchain_gemma_jax.models.seams.placement import placement_of
from langchain_gemma_jax.models.torchax.libraries import libraries
from langchain_gemma_jax.models.torchax.reading import moved


class Eager:
    """A model with its growing cache. Each token gives the cache another length, and so operators other shapes."""

    prompt_lengths: Sequence[int] = (LONG_PROMPT, PROMPT)

    def __init__(self, job: Job) -> None:
        self._found = libraries()
        dtype = getattr(self._found.torch, job.dtype)
        self._module = transformers.AutoModelForCausalLM.from_pretrained(job.checkpoint, dtype=dtype).eval()
        self._params = moved(self._module, placement_of(None))
        self.facts: Answer = {"version": f"jax {jax.__version__}, {', '.join(self._found.versions)}"}
        self.forget()

    def forget(self) -> None:
        self._cache = transformers.DynamicCache(config=self._module.config)

    def read(self, prompt: Sequence[int]) -> int:
        self._token = self._step(jnp.asarray([prompt], jnp.int32))
        return int(self._token[0, 0])

    def decode(self, count: int) -> list[int]:
        found = []
        for _ in range(count):
            self._token = self._step(self._token)
            found.append(int(self._token[0, 0]))
        return found

    def _step(self, ids: jax.Array) -> jax.Array:
        found = self._found
        with found.tracing():
            params, tokens = found.to_torch((self._params, ids))
            asked = {"input_ids": tokens, "past_key_values": self._cache, "use_cache": True, "logits_to_keep": 1}
            out = found.torch.func.functional_call(self._module, params, (), asked, tie_weights=True)
            scores: jax.Array = found.to_jax(out.logits)
        return jnp.argmax(scores[:, -1], axis=-1, keepdims=True).astype(jnp.int32)


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Make it and warm it up; a round has no conversation, which would take minutes of compiling."""
    made = Eager(job)
    warm_up(made)
    return made.facts, lambda: time_round(made)


if __name__ == "__main__":
    serve(start)
