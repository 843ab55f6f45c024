"""A process with eight simulated devices that reads models: what that takes of the host's memory, and what it gives.

python tests/models/mesh/reading.py '{"folder": "/tmp/...", "counts": [1, 4]}'
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.checkpoint.open_file import OpenFile
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.mesh.device_mesh import DeviceMesh
from langchain_gemma_jax.models.recipes import Recipe
from tests import tiny_gemma


def main(folder: str, counts: Sequence[int]) -> dict[str, object]:
    """Read a model of some size, made up in this folder, onto so many devices."""
    tiny_gemma.CONFIG |= {"vocab_size": 16384, "hidden_size": 256, "intermediate_size": 4096}
    for name, content in tiny_gemma.tiny_gemma().items():
        Path(folder, name).write_bytes(content)
    # A simulated device would take over the host's memory, as one of its own never does.
    copy, original = jax.jit(jnp.copy), jax.device_put

    def copying(array: Any, where: Any) -> jax.Array:
        copied: jax.Array = jax.block_until_ready(copy(original(array, where)))
        gc.collect()  # when JAX lets go of what it no longer needs of numpy's
        return copied

    jax.device_put = copying
    found: dict[str, object] = {}
    for count in counts:
        load(folder, recipe=Recipe("float32"), devices=count, progress=False).close()  # what is compiled and kept
        taken.clear()
        tracemalloc.start()
        model = load(folder, recipe=Recipe("float32"), devices=count, progress=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        config = model.config
        largest = max(array.nbytes for array in jax.tree.leaves(model.params))
        keys = sum(2 * layer.kv_heads * layer.head_dim * config.width * 4 for layer in config.layers)
        found[str(count)] = {"peak": peak, "largest": largest, "all": model.nbytes, "read": sum(taken), "keys": keys}
        model.close()
    jax.device_put = original
    return found | {"other": others(folder, counts)}


taken: list[int] = []  # bytes of files, read at a time


def others(folder: str, counts: Sequence[int]) -> dict[str, list[str]]:
    """The arrays that are not what they would be if they were read whole and divided then, by how they are stored."""
    from tests.models.checkpoint.quantized import test_compressed_tensors as compressed
    from tests.models.gguf import make

    sources: dict[str, tuple[str, dict[str, Any]]] = {
        "dense": (folder, {}),
        "other dtype": (folder, {"dtype": "bfloat16"}),
        "int8": (folder, {"weights": "int8"}),
        "int4": (folder, {"weights": "int4"}),
    }
    for name, kinds in (
        ("gemma4, per-layer inputs and shared KV", lambda tensor: "Q6_K" if "attn_v" in tensor else "Q4_K"),
        ("gemma4, experts", make.of_one_kind("Q8_0")),
        ("gemma3", make.mixed(4)),
    ):
        path = Path(folder, f"{len(sources)}.gguf")
        make.write(path, make.CONFIGS[name], kinds, tokenizer=make.small_tokenizer())
        sources[name] = str(path), {}
    path = Path(folder, "factors.gguf")
    experts, tokenizer = make.CONFIGS["gemma4, experts"], make.small_tokenizer()
    make.write(path, experts, make.of_one_kind("NVFP4"), tokenizer=tokenizer, factors=True, experts_apart=True)
    sources["factors"] = str(path), {}
    packed = compressed.write(Path(folder, "compressed"), compressed.packed_and_dense()[0])
    sources["compressed-tensors"] = str(packed), {}
    found = {}
    for name, (source, how) in sources.items():
        alone = load(source, progress=False, **how)
        arrays, specs = jax.tree.map(np.asarray, alone.params), alone.recipe.abstract(alone.config)
        wrong = []
        for count in counts:
            where = DeviceMesh(tuple(jax.devices()[:count]))
            model = load(source, device=where, progress=False, recipe=alone.recipe)
            wanted = jax.tree.leaves_with_path(where.put(arrays, specs))
            for (path_, one), other in zip(wanted, jax.tree.leaves(model.params), strict=True):
                same = one.sharding == other.sharding and one.shape == other.shape
                shards = zip(one.addressable_shards, other.addressable_shards, strict=True)
                if not (same and all(np.array_equal(a.data, b.data) and a.device == b.device for a, b in shards)):
                    wrong.append(f"{jax.tree_util.keystr(path_)} on {count}")
            model.close()
        alone.close()
        found[name] = wrong
    return found


def _noted(file: OpenFile, target: Any, begin: int) -> None:
    taken.append(target.nbytes)
    _fill(file, target, begin)


_fill = OpenFile.fill
OpenFile.fill = _noted  # type: ignore[method-assign]


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))  # noqa: T201
