"""This package as an engine."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.serve import Answer, Job, serve_engine
from benchmarks.workload import CAPACITY, LONG_PROMPT, PROMPT
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.checkpoint.place import place
from langchain_gemma_jax.models.kv_cache import allocate
from langchain_gemma_jax.models.model import leaves
from langchain_gemma_jax.models.recipes import Recipe, choose_recipe
from langchain_gemma_jax.models.steps import greedy_step, read


class Ours:
    """The two programs of ``models/steps.py``, one dispatch a token."""

    prompt_lengths: Sequence[int] = (LONG_PROMPT, PROMPT)

    def __init__(self, job: Job) -> None:
        self._recipe = choose_recipe(job.dtype)
        self._config, tensors, naming = open_folder(job.checkpoint)
        device = jax.local_devices()[0]
        with tensors:
            self._params = place(tensors, naming, self._config, job.dtype, self._recipe.layout, device)
        # On the device by name, as the weights are: else the second call would be compiled once more.
        self._cache = allocate(self._config, rows=1, capacity=CAPACITY, dtype=job.dtype, device=device)
        self._best = jax.jit(lambda scores: jnp.argmax(scores, axis=-1).astype(jnp.int32))
        self._token = self._start = jnp.zeros((1,), jnp.int32)
        self.facts: Answer = {
            "version": f"jax {jax.__version__}",
            "weight_bytes": sum(array.nbytes for array in leaves(self._params)),
            "recipe": describe(self._recipe),
        }

    def forget(self) -> None:
        """What a slot of the cache holds follows from how much was read, so there is nothing to clear."""

    def read(self, prompt: Sequence[int]) -> int:
        tokens, count = jnp.array([prompt], jnp.int32), jnp.array([len(prompt)], jnp.int32)
        scores, self._cache = read(
            self._params, self._config, self._recipe, tokens, jnp.zeros_like(count), count, self._cache
        )
        self._token, self._start = self._best(scores), count
        return int(self._token[0])

    def decode(self, count: int) -> list[int]:
        found = []
        for _ in range(count):
            self._token, self._start, self._cache = greedy_step(
                self._params, self._config, self._recipe, self._token, self._start, self._cache
            )
            found.append(self._token)
        return [int(np.asarray(token)[0]) for token in found]


def describe(recipe: Recipe) -> str:
    """The recipe in a line."""
    plans = {"layers": recipe.layers, "embedding": recipe.embed}
    each = [
        f"{name} {'[out, in]' if plan.out_first else '[in, out]'}, one row {plan.one_row}, few rows {plan.few_rows}"
        for name, plan in plans.items()
    ]
    return f"{'; '.join(each)} ({recipe.source})"


if __name__ == "__main__":
    serve_engine(Ours)
