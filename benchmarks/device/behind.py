"""Time a step and a chunk of a prompt behind long contexts: attention by kernels and by products, in turns.

    python benchmarks/device/behind.py [--dtype bfloat16] [--rounds 12] [--processor-time]

The 270M shape with random weights, a conversation at a time, with tables that reach as far as the engine's would.
Prints a table of figures.md. With ``--processor-time``, what the process took of processors is told, and not what a
clock said: for machines that are shared, and on one processor (``taskset -c 0``), where nobody waits.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.work.bare_programs import bare_shape, bare_tables, greedy_rows
from benchmarks.work.checkpoint import CONFIG
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.device.page_pool import KvPool
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import AttentionForm, choose_recipe
from langchain_gemma_jax.models.seams.placement import placement_of

BEHIND = (512, 4096, 16384)  # tokens that a step's conversation has
PROMPTS = (2048, 16384)  # of which the chunk in the middle is read: what a chunk costs on the average
CHUNK = 512
ROOM = 64  # tokens more than a context has
FORMS = (AttentionForm.PRODUCTS, AttentionForm.KERNEL)


class Beside:
    """One model, with programs for each way to attend."""

    def __init__(self, dtype: str, clock: Callable[[], float]) -> None:
        config = config_from_hf(dict(CONFIG), "the 270M shape")
        recipe = choose_recipe(dtype)
        self.clock, self.device = clock, jax.local_devices()[0]
        self.kind, self.recipe, self.ladders = Gemma(config), recipe, Ladders().for_context(config.max_context)
        self.params = jax.device_put(random_params(config, recipe), self.device)
        self.greedy = self.put(greedy_rows(config.vocab_size))

    def put(self, tree: Any) -> Any:
        return jax.device_put(tree, self.device)

    def conversation(self, form: AttentionForm, tokens: int) -> tuple[Programs, Any, KvPool]:
        """Return the programs for a conversation, its tables, and a pool with made-up keys and values."""
        capacity = self.ladders.capacity(tokens + ROOM)
        shape = bare_shape(self.kind, replace(self.recipe, attention=form), capacity, chunk=CHUNK)
        programs, key = Programs(shape, placement_of(self.device)), jax.random.key(0)

        def made_up(leaf: jax.Array) -> jax.Array:
            if leaf.dtype == jnp.int32:
                return leaf
            return (jax.random.normal(key, leaf.shape, jnp.float32) * 0.5).astype(leaf.dtype)

        return programs, self.put(bare_tables(shape)), jax.tree.map(made_up, programs.empty()())

    def step(self, form: AttentionForm, behind: int) -> Callable[[], float]:
        """Return a function that makes a token, and gives how long that took."""
        given = self.put((np.array([5], np.int32), np.array([behind], np.int32), np.ones(1, np.int32)))
        programs, tables, pool = self.conversation(form, behind)
        state = [pool]

        def run() -> float:
            began = self.clock()
            picked, _, state[0] = programs.step(self.params, *given, tables, state[0], self.greedy)
            jax.block_until_ready(picked)
            return self.clock() - began

        return run

    def chunk(self, form: AttentionForm, prompt: int) -> Callable[[], float]:
        """Return a function that reads the middle of a prompt, and gives how long that took."""
        tokens = np.random.default_rng(0).integers(1000, 200_000, (1, CHUNK)).astype(np.int32)
        numbers = np.array([(prompt - CHUNK) // 2], np.int32), np.array([CHUNK], np.int32), np.array(0, np.int32)
        given = self.put((tokens, *numbers))
        programs, tables, pool = self.conversation(form, prompt)
        state = [pool]

        def run() -> float:
            began = self.clock()
            hidden, _, state[0] = programs.read(self.params, *given, tables, state[0])
            jax.block_until_ready(hidden)
            return self.clock() - began

        return run


def best(runs: dict[AttentionForm, Callable[[], float]], rounds: int) -> dict[AttentionForm, float]:
    """The best of several, in turns. The first compiles."""
    times: dict[AttentionForm, list[float]] = {form: [] for form in runs}
    for _ in range(rounds + 1):
        for form, run in runs.items():
            times[form].append(run())
    return {form: min(each[1:]) for form, each in times.items()}


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--dtype", default="bfloat16")
    arguments.add_argument("--rounds", type=int, default=12)
    arguments.add_argument("--processor-time", action="store_true")
    options = arguments.parse_args()
    beside = Beside(options.dtype, time.process_time if options.processor_time else time.perf_counter)
    print(f"jax {jax.__version__}, {options.dtype}\n\n| | {' | '.join(FORMS)} |\n| --- | --- | --- |")
    for behind in BEHIND:
        found = best({form: beside.step(form, behind) for form in FORMS}, options.rounds)
        row = [f"{found[form] * 1e3:.1f} ms" for form in FORMS]
        print(f"| a step behind {behind:,} tokens | {' | '.join(row)} |", flush=True)
    for prompt in PROMPTS:
        found = best({form: beside.chunk(form, prompt) for form in FORMS}, max(1, options.rounds // 4))
        row = [f"{CHUNK / found[form]:,.0f} tok/s" for form in FORMS]
        print(f"| reading {prompt:,} tokens | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
