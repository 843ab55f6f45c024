"""Time Gemma's shapes with random weights on the GPU or TPU that JAX finds: decode beside the memory's bandwidth.

    python benchmarks/device/accelerator.py --sizes gemma-3-4b,gemma-3-27b --weights bfloat16,int8,int4

Weights are drawn on the device, so no file is needed. To make a token, each weight is read once: bytes of weights
over the measured bandwidth is the least time that a step can take. Each size and way is a row of the table.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.running.command import positive
from benchmarks.work.bare_programs import bare_shape, bare_tables, greedy_rows
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.configuration.catalog import known, published
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.packed.choose_forms import choose_block_forms
from langchain_gemma_jax.models.packed.quantize import quantized
from langchain_gemma_jax.models.recipes import Recipe, choose_recipe
from langchain_gemma_jax.models.seams.params import Params, leaves
from langchain_gemma_jax.models.seams.placement import placement_of

WAYS = ("bfloat16", "int8", "int4")
CAPACITY, PROMPT, STEPS, CALLS = 4096, 2048, 8, 12
BUFFER = 4 << 30  # bytes: no cache holds them


@dataclass(frozen=True)
class Row:
    """One row of the table: a size, a way to store its weights, and what was measured."""

    size: str
    weights: str
    gigabytes: float
    decode: dict[int, float]  # tokens a second, of all rows together, by how many rows
    of_bandwidth: float  # of a step of one row
    prefill: float  # tokens a second
    compile_seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 if there is no accelerator, unless it was asked to go on."""
    options = parse(arguments)
    device = jax.local_devices()[0]
    if device.platform == "cpu" and not options.cpu:
        print("JAX finds no GPU or TPU here. `gemma-jax doctor` says why; --cpu goes on all the same.", file=sys.stderr)
        return 1
    speed = bandwidth(BUFFER if device.platform != "cpu" else BUFFER >> 5)
    print(f"{device.device_kind}, jax {jax.__version__}: memory is read at {speed / 1e9:,.0f} GB/s", flush=True)
    rows = []
    for size in options.sizes:
        for way in options.weights:
            rows.append(measured(size, way, speed, options.rows))
            print(line(rows[-1]), flush=True)
    print(table(rows))
    if options.json is not None:
        found = {"device": device.device_kind, "jax": jax.__version__, "bandwidth": speed}
        options.json.write_text(json.dumps({**found, "rows": [asdict(row) for row in rows]}, indent=2) + "\n")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/device/accelerator.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--sizes", type=some_of(tuple(known())), default=("gemma-3-4b",), help="names, with commas")
    parser.add_argument("--weights", type=some_of(WAYS), default=WAYS, help=f"some of {','.join(WAYS)}")
    parser.add_argument("--rows", type=counts, default=(1, 8), help="conversations at once; the first is 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--cpu", action="store_true", help="go on where there is no accelerator")
    return parser.parse_args(arguments)


def some_of(names: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Some of these names, for argparse."""

    def chosen(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        if unknown := sorted(set(found) - set(names)):
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(names)}; found {', '.join(unknown)}")
        return found

    return chosen


def counts(text: str) -> tuple[int, ...]:
    """Parse numbers of conversations at once, for argparse: one first, which the bandwidth is compared with."""
    found = tuple(map(positive, text.split(",")))
    if found[0] != 1:
        raise argparse.ArgumentTypeError(f"expected 1 first, found {text}")
    return found


def bandwidth(size: int) -> float:
    """Bytes a second that a buffer is read at: the best of several runs of two ways."""
    buffer = jnp.ones((size // 16384, 8192), jnp.bfloat16)
    row = jnp.ones((1, 8192), jnp.bfloat16)
    sums = jax.jit(lambda array: jnp.sum(array.astype(jnp.float32), axis=1))
    product = jax.jit(lambda row, array: jnp.einsum("mi,oi->mo", row, array, preferred_element_type=jnp.float32))
    return size / min(best_of(lambda: sums(buffer)), best_of(lambda: product(row, buffer)))


def best_of(run: Callable[[], Any], times: int = 5) -> float:
    """The shortest of several runs, in seconds; one more goes first."""
    jax.block_until_ready(run())
    took = []
    for _ in range(times):
        began = time.perf_counter()
        jax.block_until_ready(run())
        took.append(time.perf_counter() - began)
    return min(took)


def recipe_for(way: str) -> Recipe:
    """Return how the matrices are stored and multiplied: as ``ChatGemmaJax(weights=...)`` does."""
    plain = choose_recipe("bfloat16")
    return plain if way == "bfloat16" else replace(plain, storage=quantized(way, choose_block_forms()))


def measured(size: str, way: str, speed: float, counts: Sequence[int]) -> Row:
    """Draw the weights, compile, and take the times."""
    config, recipe = published(size), recipe_for(way)
    params = drawn(config, recipe)
    held = sum(array.nbytes for array in leaves(params))
    runner = Runner(config, recipe, params)
    began = time.perf_counter()
    prefill = PROMPT / best_of(runner.read, 3)
    decode = {rows: runner.decode(rows) for rows in counts}
    took = time.perf_counter() - began
    for array in leaves(params):
        array.delete()
    return Row(size, way, held / 1e9, decode, held * decode[1] / speed, prefill, took)


class Runner:
    """The engine's programs of one model, without the engine around them."""

    def __init__(self, config: ModelConfig, recipe: Recipe, params: Params) -> None:
        self._params, self._config = params, config
        self._kind, self._recipe = Gemma(config), recipe
        self._programs, self._tables, self._pool = self._conversations(1)
        random = np.random.default_rng(0)
        self._prompt = jax.device_put(random.integers(1000, config.vocab_size - 1000, (1, PROMPT)).astype(np.int32))

    def _conversations(self, rows: int) -> tuple[Programs, Any, Any]:
        """Return the programs for so many conversations together, their tables, and a pool."""
        shape = bare_shape(self._kind, self._recipe, CAPACITY, chunk=PROMPT, rows=rows, loop_steps=STEPS)
        programs = Programs(shape, placement_of(None))
        return programs, jax.device_put(bare_tables(shape, rows)), programs.empty()()

    def read(self) -> object:
        """Read the prompt, from the beginning."""
        numbers = np.zeros(1, np.int32), np.full(1, PROMPT, np.int32), np.array(PROMPT - 1, np.int32)
        given = jax.device_put(numbers)
        hidden, _, self._pool = self._programs.read(self._params, self._prompt, *given, self._tables, self._pool)
        return hidden

    def decode(self, rows: int) -> float:
        """Tokens a second of so many conversations together, behind as many tokens as the prompt has."""
        programs, tables, pool = self._conversations(rows)
        greedy = jax.device_put(greedy_rows(self._config.vocab_size, rows))
        tokens, ends, limits, stops = jax.device_put(
            (
                np.arange(2000, 2000 + rows, dtype=np.int32),
                np.full(rows, PROMPT, np.int32),
                np.full(rows, STEPS, np.int32),
                np.full((rows, 16), -1, np.int32),
            )
        )
        took = []
        for _ in range(CALLS):
            began = time.perf_counter()
            picked, got, pool = programs.loop(self._params, tokens, ends, limits, stops, tables, pool, greedy)
            made = int(np.asarray(got).sum())
            took.append((time.perf_counter() - began) / made)
            tokens, ends = picked.tokens[-1], ends + STEPS
        return 1 / median(took[2:])


def drawn(config: ModelConfig, recipe: Recipe) -> Params:
    """Random weights, made where they lie."""
    keys = iter(jax.random.split(jax.random.key(0), 10_000))

    def array(spec: ArraySpec) -> Any:
        if len(spec.shape) < 2:  # a norm, stored as what is added to one
            return jnp.zeros(spec.stored_shape, spec.dtype)
        return _matrix(next(keys), spec.stored_shape, spec.dtype)

    params: Params = jax.tree.map(array, recipe.abstract(config), is_leaf=lambda leaf: isinstance(leaf, ArraySpec))
    return params


@functools.partial(jax.jit, static_argnums=(1, 2))
def _matrix(key: jax.Array, shape: tuple[int, ...], dtype: str) -> jax.Array:
    kind = jnp.dtype(dtype)
    if jnp.issubdtype(kind, jnp.integer):
        return jax.lax.bitcast_convert_type(jax.random.bits(key, shape, jnp.uint8), kind)
    # Scales of packed numbers, which are up to 127 or 8, are as small as the numbers themselves.
    return jax.random.normal(key, shape, jnp.bfloat16).astype(kind) * jnp.asarray(0.02, kind)


def line(row: Row) -> str:
    """A row of the table."""
    decode = " | ".join(f"{speed:,.0f}" for speed in row.decode.values())
    return (
        f"| {row.size} | {row.weights} | {row.gigabytes:.1f} GB | {decode} | {row.of_bandwidth:.2f} "
        f"| {row.prefill:,.0f} | {row.compile_seconds:.0f} s |"
    )


def table(rows: Sequence[Row]) -> str:
    """The table, in Markdown."""
    decode = " | ".join(f"{count} at once" for count in rows[0].decode)
    title = f"| size | weights | bytes | {decode} | of bandwidth, alone | prefill of {PROMPT:,} | with compiling |"
    return "\n".join([title, "|" + " --- |" * title.count(" |"), *map(line, rows)])


if __name__ == "__main__":
    sys.exit(main())
