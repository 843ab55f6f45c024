"""Time a check of drafts by its rows, beside a step of one: what a further drafted token costs, packed and dense.

    python -m benchmarks.drafts.rows build/real/gemma-3-270m-Q4_K_M.gguf build/real/bfloat16

A check is what the engine runs: a chunk of up to 16 tokens, and the choice behind each of them. All numbers of rows
take turns, behind 256 tokens.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

from benchmarks.work.bare_programs import bare_shape, bare_tables, greedy_rows
from benchmarks.work.workload import PROMPT, prompt_ids
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.seams.placement import placement_of

MOST, CHUNK, ROUNDS, BAR_ROWS, BAR = 16, 256, 15, 8, 1.6


class Checking:
    """A model's programs for one conversation, which stays as long as it is."""

    def __init__(self, model: Model) -> None:
        self._params, self._device = model.params, model.device
        shape = bare_shape(model.architecture, model.recipe, 2 * CHUNK, chunk=CHUNK)
        checks = replace(shape, picks=MOST)
        self._step, self._check = (Programs(each, placement_of(model.device)) for each in (shape, checks))
        self._pool, self._tables = self._step.empty()(), self._put(bare_tables(shape))
        vocabulary = model.architecture.vocab_size
        self._one, self._many = (self._put(greedy_rows(vocabulary, rows)) for rows in (1, MOST))
        self._words = prompt_ids()
        self._tables_of_many = self._put(np.repeat(bare_tables(shape).whole, MOST, 0))
        self._read(np.array([self._words[:PROMPT]], np.int32), PROMPT, self._check, start=0)

    def step(self) -> None:
        """Read one token and choose the next one."""
        token, ends, alive = self._put((np.array([self._words[PROMPT]], np.int32), np.array([PROMPT], np.int32),
                                        np.ones(1, np.int32)))  # fmt: skip
        picked, _, self._pool = self._step.step(self._params, token, ends, alive, self._tables, self._pool, self._one)
        np.asarray(picked.tokens)

    def check(self, rows: int) -> None:
        """Read some tokens and choose behind each of them."""
        words = np.zeros((1, MOST), np.int32)
        words[0, :rows] = self._words[PROMPT : PROMPT + rows]
        hidden, ends = self._read(words, rows, self._check, start=PROMPT)
        picked = self._check.pick(
            self._params, hidden, ends, np.int32(rows), self._tables_of_many, self._pool.ids, self._many
        )
        np.asarray(picked.tokens)

    def _read(self, words: np.ndarray[Any, Any], count: int, by: Programs, start: int) -> tuple[jax.Array, jax.Array]:
        numbers = np.array([start], np.int32), np.array([count], np.int32), np.array(0, np.int32)
        given = self._put((words, *numbers))
        hidden, ends, self._pool = by.read(self._params, *given, self._tables, self._pool)
        return hidden, ends

    def _put(self, tree: Any) -> Any:
        return jax.device_put(tree, self._device)


def costs(model: Model, rounds: int = ROUNDS) -> dict[int, float]:
    """The cost of a check by its rows, in steps of one; medians of pairs in a round."""
    checking, found = Checking(model), dict[int, list[float]]()
    works: dict[int, Callable[[], None]] = {1: checking.step}
    works |= {rows: partial(checking.check, rows) for rows in range(2, MOST + 1)}
    for number in range(-2, rounds):
        took = {rows: _seconds(work) for rows, work in works.items()}
        if number >= 0:
            for rows, seconds in took.items():
                found.setdefault(rows, []).append(seconds / took[1])
    return {rows: median(each) for rows, each in found.items()}


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.drafts.rows", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("models", nargs="+", type=Path, help="files or folders")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"{ROUNDS} by default")
    options = parser.parse_args(arguments)
    table: dict[str, dict[int, float]] = {}
    for path in options.models:
        with load(path, progress=False) as model:
            table[path.stem] = costs(model, options.rounds)
    print(f"| rows | {' | '.join(table)} |")
    print("|---" * (1 + len(table)) + "|")
    for rows in range(1, MOST + 1):
        print(f"| {rows} | {' | '.join(f'{each[rows]:.2f}' for each in table.values())} |")
    print(f"\nSteps of one row. The bar for packed weights is {BAR:g} at {BAR_ROWS} rows.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
