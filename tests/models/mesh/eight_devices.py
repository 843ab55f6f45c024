"""A process with eight simulated devices, in which shrunk models run on one of them and divided among several.

    python tests/models/mesh/eight_devices.py '{"counts": [2, 4], "names": ["gemma-4-e2b"], "storage": "dense"}'

Prints a line of JSON: how far the scores are apart, what the programs exchange, what lies on each device.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import gcd
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.engine.device.page_pool import shardings
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.mesh.device_mesh import DeviceMesh
from langchain_gemma_jax.models.packed.quantize import Quantized
from langchain_gemma_jax.models.recipes import Plan, Recipe
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.block_forms import BlockForm, BlockForms
from langchain_gemma_jax.models.seams.params import assemble
from langchain_gemma_jax.models.seams.placement import Placement, SingleDevice
from langchain_gemma_jax.models.seams.score_share import ScoreShare
from langchain_gemma_jax.models.seams.weights import stored_as, total_bytes
from tests.parity.tiny import parameters, small

ROOT = Path(__file__).parents[3]
CAPACITY, CHUNKS, STEPS = 64, (20, 4), 6  # a chunk that goes round the rings, and one that is padded to its length
RECIPES = {
    "dense": Recipe("float32"),
    "inputs first": Recipe("float32", layers=Plan(out_first=False), embed=Plan(out_first=False)),
    "int8": Recipe("float32", storage=Quantized(8, BlockForms())),
    "int4": Recipe("float32", storage=Quantized(4, BlockForms(*(BlockForm.WHOLE,) * 3))),
    "rounded cache": Recipe("float32", cache_dtype="int8"),
}
BLOCK = 32  # numbers of a packed matrix that stay together
WIDER = {"int8": 8, "int4": 8}  # packed in groups of 32, a shrunk model's parts would be none
WHOLE = {"router", "ple_in", "ple_gate", "ple_out"}  # matrices that every device has whole
COLLECTIVE = re.compile(
    r"= \(?(\w+\[[\d,]*\]).* (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)\("
)


def start(script: Path, asked: object, **settings: str) -> dict[str, Any]:
    """Run a script in such a process, and return what it printed."""
    always = {
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(script), json.dumps(asked)],
        env=os.environ | always | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"the process ended with {done.returncode}: {done.stderr[-6000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(counts: Sequence[int], names: Sequence[str], storage: str) -> dict[str, object]:
    """Return the results of each model on these numbers of devices, next to those on one."""
    found = {}
    for name in names:
        config = _wider(small(name), WIDER.get(storage, 1))
        alone = run(config, RECIPES[storage], SingleDevice(jax.devices()[0]))
        for count in counts:
            there = run(config, RECIPES[storage], DeviceMesh(tuple(jax.devices()[:count])))
            apart = np.abs(np.array(alone["scores"]) - np.array(there.pop("scores")))
            there["apart"] = float(apart.max() / np.ptp(np.array(alone["scores"])))
            there["as alone"] = [there[what] == alone[what] for what in ("tokens", "best")]
            there |= {"alone": alone["on each"][0], "layers": len(config.layers), "vocabulary": config.vocab_size}
            found[f"{name} on {count}"] = there
    return found


def _wider(config: ModelConfig, times: int) -> ModelConfig:
    layers = [
        layer.__class__(**(vars(layer) | {"head_dim": layer.head_dim * times, "ffw_width": layer.ffw_width * times}))
        for layer in config.layers
    ]
    moe = config.moe and config.moe.__class__(**(vars(config.moe) | {"ffw_width": config.moe.ffw_width * times}))
    return config.replace(layers=tuple(layers), moe=moe)


def run(config: ModelConfig, recipe: Recipe, where: Placement) -> dict[str, Any]:
    """A prompt in chunks, some greedy tokens, and what the compiled programs exchange."""
    kind, layout = Gemma(config).at(where), recipe.kept(config.cache_layout)
    params = where.put(_stored(config, recipe), recipe.abstract(config))

    def forward(params: Any, tokens: Any, start: Any, count: Any, cache: Any) -> Any:
        hidden, cache = kind.forward(params, recipe, tokens, start, count, cache, None)
        return kind.logits(params, recipe, hidden), cache

    empty = partial(kv_cache.allocate, layout, 1, CAPACITY, "float32")
    homes = shardings(where, jax.eval_shape(empty))
    cache = jax.jit(empty, out_shardings=homes)()
    program = jax.jit(forward, donate_argnums=4, out_shardings=(where.sharding(), homes))
    made: dict[int, Any] = {}
    said = [int(token) for token in np.random.default_rng(1).integers(4, 150, sum(CHUNKS))]
    scores: list[list[float]] = []
    start = 0
    for count in [*CHUNKS, *[1] * STEPS]:
        if start == len(said):
            said.append(int(np.argmax(scores[-1])))
        length = CHUNKS[0] if count > 1 else 1
        tokens = np.zeros((1, length), np.int32)
        tokens[0, :count] = said[start : start + count]
        numbers = where.put((tokens, np.array([start], np.int32), np.array([count], np.int32)))
        if length not in made:
            made[length] = program.lower(params, *numbers, cache).compile()
        with jax.transfer_guard("disallow"):
            found, cache = made[length](params, *numbers, cache)
        scores += np.asarray(found)[0, :count].tolist()
        start += count
    state = where.put(np.random.default_rng(2).normal(size=config.width).astype(np.float32))
    best = (
        jax.jit(lambda params, state: kind.with_scores(params, recipe, state, jnp.int32(1), _best))
        .lower(params, state)
        .compile()
    )
    exchanged = [COLLECTIVE.findall(one.as_text()) for one in made.values()]
    return {
        "scores": scores,
        "tokens": said,
        "exchanged": [dict(Counter(kind for _, kind in each)) for each in exchanged],
        "best": int(best(params, state)),
        "told": [shape for shape, _ in COLLECTIVE.findall(best.as_text())],
        "gathered": [shape for each in exchanged for shape, kind in each if kind != "all-reduce"],
        "on each": _on_each(params, where),
        "foretold": where.nbytes(recipe.abstract(config)),
        "kv on each": _on_each(cache.layers, where),
        "documented": _documented(config, recipe, len(where.devices)),
    }


def _best(scores: jax.Array, share: ScoreShare) -> jax.Array:
    """The lowest id with the best score."""
    found: jax.Array = share.min(jnp.where(scores == share.max(scores), share.ids(scores.size), 2**31 - 1))
    return found


def _on_each(tree: Any, where: Placement) -> list[int]:
    shards = [shard for array in jax.tree.leaves(tree) for shard in array.addressable_shards]
    return [sum(shard.data.nbytes for shard in shards if shard.device == device) for device in where.devices]


def _documented(config: ModelConfig, recipe: Recipe, count: int) -> float:
    """The bytes of each device that docs/devices.md allows."""
    found = 0.0
    for path, spec in walk(abstract(config, "float32", recipe.layout)):
        layer = config.layers[int(path[1])] if path[0] == "layers" else None
        stored = stored_as(recipe.storage, path, spec)
        nbytes = total_bytes(stored)
        if len(spec.shape) < 2 or path[-1] in WHOLE:
            found += nbytes
        elif layer is not None and path[-1] in {"qkv", "attn_out"}:
            queries = nbytes * 4 * config.width * config.heads * layer.head_dim / spec.nbytes
            ways = gcd(config.heads, count)
            if path[-1] == "attn_out" and stored is not spec:
                ways = gcd(ways, config.heads * layer.head_dim // BLOCK)
            found += queries / ways + (nbytes - queries) / gcd(layer.kv_heads, count)
        else:
            by_inputs = layer is not None and path[-1] == "down" and stored is not spec
            ways = gcd(count, layer.ffw_width // BLOCK) if by_inputs and layer is not None else count
            found += nbytes / ways * 1.02
    return found


def _stored(config: ModelConfig, recipe: Recipe) -> Any:
    """Made-up weights, as they are stored."""
    dense, found = parameters(config, Recipe("float32", recipe.layers, recipe.embed)), []
    for path, spec in walk(abstract(config, "float32", recipe.layout)):
        array: Any = dense
        for key in path:
            array = array[key]
        packed = stored_as(recipe.storage, path, spec) is not spec
        found.append((path, recipe.storage.pack(path, spec, np.asarray(array)) if packed else np.asarray(array)))
    return assemble(found)


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))  # noqa: T201
