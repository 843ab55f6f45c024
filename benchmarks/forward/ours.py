"""Our programs as an engine: what ``engine/`` runs on the device, without the engine around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from benchmarks.running.serve import Answer, Job, serve_engine
from benchmarks.work.bare_programs import bare_shape, bare_tables, greedy_rows
from benchmarks.work.workload import CAPACITY, LONG_PROMPT, PROMPT
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.recipes import Recipe, choose_recipe
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.params import Params, leaves
from langchain_gemma_jax.models.seams.placement import placement_of


class Ours:
    """A prompt is one chunk; a token is one dispatch."""

    prompt_lengths: Sequence[int] = (LONG_PROMPT, PROMPT)

    def __init__(self, kind: Architecture, recipe: Recipe, params: Params, device: jax.Device) -> None:
        self._params, self._device = params, device
        shape = bare_shape(kind, recipe, CAPACITY, chunk=max(self.prompt_lengths))
        self._programs = Programs(shape, placement_of(self._device))
        self._pool, self._tables = self._programs.empty()(), self._put(bare_tables(shape))
        self._greedy, self._one = self._put((greedy_rows(kind.vocab_size), np.ones(1, np.int32)))
        self.facts: Answer = {
            "version": f"jax {jax.__version__}",
            "weight_bytes": sum(array.nbytes for array in leaves(self._params)),
            "recipe": describe(recipe),
        }

    def forget(self) -> None:
        """Do nothing: the content of the cache follows from how much was read."""

    def read(self, prompt: Sequence[int]) -> int:
        count = len(prompt)
        numbers = np.zeros(1, np.int32), np.array([count], np.int32), np.array(count - 1, np.int32)
        given = self._put((np.array([prompt], np.int32), *numbers))
        hidden, self._ends, self._pool = self._programs.read(self._params, *given, self._tables, self._pool)
        picked = self._programs.pick(
            self._params, hidden, self._ends, self._one[0], self._tables.whole, self._pool.ids, self._greedy
        )
        self._token = picked.tokens
        return int(np.asarray(self._token)[0])

    def decode(self, count: int) -> list[int]:
        found = []
        for _ in range(count):
            picked, self._ends, self._pool = self._programs.step(
                self._params, self._token, self._ends, self._one, self._tables, self._pool, self._greedy
            )
            self._token = picked.tokens
            found.append(self._token)
        return [int(np.asarray(token)[0]) for token in found]

    def _put(self, tree: Any) -> Any:
        return jax.device_put(tree, self._device)


def describe(recipe: Recipe) -> str:
    """The recipe in a line."""
    plans = {"layers": recipe.layers, "embedding": recipe.embed}
    each = [
        f"{name} {'[out, in]' if plan.out_first else '[in, out]'}, one row {plan.one_row}, "
        f"few rows (to {plan.most_of_few}) {plan.few_rows}"
        for name, plan in plans.items()
    ]
    return f"{'; '.join(each)} ({recipe.source})"


def dense(job: Job) -> Ours:
    """The engine that a job asks for."""
    recipe = choose_recipe(job.dtype)
    config, tensors, naming = open_folder(job.checkpoint)
    device = jax.local_devices()[0]
    with tensors:
        params = place(tensors, naming, config, job.dtype, recipe.layout, device)
    return Ours(Gemma(config), recipe, params, device)


if __name__ == "__main__":
    serve_engine(dense)
