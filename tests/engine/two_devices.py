"""A process with two simulated devices that serves a tiny model from one of them and, divided, from both.

    python tests/engine/two_devices.py FOLDER single halves "packed halves talk"

Prints a line of JSON. ``Halves`` is a second placement, which holds the seam to what it promises.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from langchain_gemma_jax.models.configuration.abstract import Axes
from langchain_gemma_jax.models.seams.placement import Placement, SingleDevice
from langchain_gemma_jax.models.seams.weights import map_specs

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.api.engine import Engine
    from langchain_gemma_jax.engine.residency.served import Served
    from langchain_gemma_jax.engine.steps.runner import Runner
    from langchain_gemma_jax.models.recipes import Recipe

ROOT = Path(__file__).parents[2]
DIVIDED = ("ffw", "heads", "vocab", "kv_heads")  # along the first of these that an array has, and that divides


@dataclass(frozen=True)
class Halves(Placement):
    """Several devices, with one of the axes ``DIVIDED`` over them; arrays that have none of them are everywhere."""

    all_of_them: tuple[jax.Device, ...]

    @property
    def devices(self) -> tuple[jax.Device, ...]:
        return self.all_of_them

    @property
    def key(self) -> str:
        return ",".join(str(device.id) for device in self.all_of_them)

    def sharding(self, shape: Sequence[int] = (), axes: Axes = ()) -> jax.sharding.Sharding:
        count = len(self.all_of_them)
        fitting = [i for name in DIVIDED for i, axis in enumerate(axes) if axis == name and shape[i] % count == 0]
        at = next(iter(fitting), None)
        names = [] if at is None else [*[None] * at, "part"]
        mesh = jax.sharding.Mesh(self.all_of_them, "part")
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*names))

    def put(self, tree: Any, specs: Any = None) -> Any:
        if specs is None:
            return jax.device_put(tree, self.sharding())
        return jax.device_put(tree, map_specs(self.sharding_of, specs))


def start(folder: Path, cache: Path | str, *names: str) -> dict[str, Any]:
    """Run such a process, with compiled programs kept in ``cache``, and return what it printed."""
    settings = {
        "GEMMA_JAX_COMPILE_CACHE": str(cache),
        "GEMMA_JAX_CACHE_DIR": str(folder / "measured"),
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(Path(__file__)), str(folder), *names],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"the process ended with {done.returncode}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(folder: str, names: Sequence[str]) -> dict[str, object]:
    """Load and run one model in the places named. A name with ``packed`` stores it as int8, one with ``talk`` talks."""
    from langchain_gemma_jax.models.recipes import Recipe
    from tests.models.int8 import Int8Storage

    jax.config.update("jax_transfer_guard", "disallow")
    halves = Halves(tuple(jax.devices()[:2]))
    found: dict[str, object] = {}
    for name in names:
        where = halves if "halves" in name else SingleDevice(halves.devices[0])
        recipe = Recipe("float32", storage=Int8Storage()) if "packed" in name else Recipe("float32")
        found[name] = served_from(folder, where, recipe, talk="talk" in name)
    return found


def served_from(folder: str, where: Placement, recipe: Recipe, *, talk: bool) -> dict[str, object]:
    """Return the answers of a model in one place."""
    from langchain_gemma_jax import Ladders
    from langchain_gemma_jax.engine.api.engine import Engine
    from langchain_gemma_jax.engine.base.settings import Settings
    from langchain_gemma_jax.models.seams.params import leaves
    from tests.engine.model_files import FilesAround

    ladders = Ladders(chunks=(16,), capacities=(64, 128), rows=(1, 2), draft=4)
    engine = Engine(Settings(ladders=ladders, guards="raise", drafts=True, host_kv_bytes=2**20))
    engine._loader._files = FilesAround(recipe=recipe, where=where)
    served = engine.load(folder)
    model = served.model
    shards = [shard for array in leaves(model.params) for shard in array.addressable_shards]
    found: dict[str, object] = {
        "nbytes": model.nbytes,
        "on each": [sum(shard.data.nbytes for shard in shards if shard.device == device) for device in where.devices],
        "entry": engine._owner.models.known[served].entry.weights,
        "foretold": where.nbytes(recipe.abstract(model.config)),
        "divided": sum(not array.sharding.is_fully_replicated for array in leaves(model.params)),
    }
    found |= conversations(engine, served) if talk else programs(engine._owner.models.runners[served])
    if not engine.close(60):
        raise AssertionError("the engine did not close")
    model.close()
    return found


def programs(runner: Runner) -> dict[str, object]:
    """Return the results of a chunk and a step, by the engine's own programs."""
    import numpy as np

    from langchain_gemma_jax.engine.device.knobs import knobs, packed
    from langchain_gemma_jax.engine.device.page_pool import Tables
    from langchain_gemma_jax.engine.device.programs import RowSettings

    library, put, shape = runner.library, runner.device.put, runner.kv_store.held.shape
    pool = library.of(("empty",))()
    chunk = (np.arange(5, 21, dtype=np.int32)[None], np.zeros(1, np.int32), np.full(1, 16, np.int32))
    row, entries = 1 + np.arange(64 // shape.pages.slots, dtype=np.int32), shape.local_entries

    def tables(width: int) -> Tables:
        whole = np.zeros((1, width), np.int32)
        whole[0, : len(row)] = row
        return put(Tables(whole, np.resize(row, (1, entries))))  # type: ignore[arg-type,no-any-return]

    idle = packed(knobs(seed=0, prompt_length=0, temperature=0.0))
    some = lambda rows: RowSettings(put(np.stack([idle] * rows)), (runner.knobs._all_allowed,) * rows)  # noqa: E731
    numbers = put((*chunk, np.array(15, np.int32)))
    hidden, ends, pool = library.of(("read", 16, 64))(runner.params, *numbers, tables(len(row)), pool)
    first, picks = pool.layers[0].keys, shape.picks
    wide = put(np.zeros((picks, 128 // shape.pages.slots), np.int32))
    one = put(np.array(1, np.int32))
    began = library.of(("pick", picks))(runner.params, hidden, ends, one, wide, pool.ids, some(picks))
    tokens, at, alive = put((np.asarray(began.tokens)[:1], np.full(1, 16, np.int32), np.ones(1, np.int32)))
    step = library.of(("step", 1, 64))
    picked, ends, pool = step(runner.params, tokens, at, alive, tables(len(row)), pool, some(1))
    keys = [np.asarray(jax.device_get(layer.keys))[1:4].tolist() for layer in pool.layers]
    divided = runner.params["embed"]
    kept = jax.jit(library.programs._kept(lambda array: -array))(divided)  # XLA alone would leave it divided
    whole = (hidden, ends, pool.ids, *jax.tree.leaves(picked), kept)
    return {
        "heads on each": first.sharding.shard_shape(first.shape)[1],
        "numbers": [np.asarray(hidden).tolist(), *keys],
        "tokens": [np.asarray(each).tolist() for each in (tokens, picked.tokens, ends)],
        "whole": [array.sharding.is_fully_replicated for array in whole],
    }


def conversations(engine: Engine, served: Served) -> dict[str, object]:
    """Return the answers with reuse, two at a time, drafts, growth, and by a model that goes and comes back."""
    from langchain_gemma_jax import Sampling

    greedy = Sampling(max_tokens=12, ignore_eos=True)
    talk = [7, 8, 9] * 8
    for _ in range(3):
        talk += engine.submit(served, talk, greedy).result().ids
    pair = [engine.submit(served, talk[:20] + [30 + i] * 9, greedy) for i in range(2)]
    said = [one.result().ids for one in pair]
    engine.evict(served)
    said.append(engine.submit(served, talk[:50], greedy).result().ids)
    report = engine.report()
    return {
        "said": [talk, *said],
        "reused": report.reused_tokens,
        "accepted": report.accepted_tokens,
        "evicted": report.models_evicted,
        "restored": report.restored,
        "misses": report.cache_misses,
        "hits": report.cache_hits,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2:])))  # noqa: T201
