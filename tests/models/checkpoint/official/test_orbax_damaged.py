"""Orbax checkpoints that are damaged, by accident or on purpose: an error of this package, or the arrays."""

from __future__ import annotations

import random
import resource

import jax
import numpy as np
import pytest

from langchain_gemma_jax.errors import GemmaJaxError
from langchain_gemma_jax.models.checkpoint.official.orbax import open_orbax
from langchain_gemma_jax.models.configuration.abstract import Layout
from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, Rope
from langchain_gemma_jax.models.loading.place import place
from tests.models.checkpoint.official.test_orbax import flat, save_to

LAYER = LayerConfig(kv_heads=1, head_dim=4, ffw_width=8, rope=Rope(1e4))
CONFIG = ModelConfig("gemma", 24, 8, 2, (LAYER,), 64, 1.0)
OPTIONS = ({}, {"use_ocdbt": False}, {"use_zarr3": True}, {"use_ocdbt": False, "use_zarr3": True})
HEADERS = (".zarray", "zarr.json")


def tree():
    chance = np.random.default_rng(0)

    def made(*shape):
        return chance.normal(size=shape).astype(np.float32)

    attention = {"q_einsum": {"w": made(2, 8, 4)}, "kv_einsum": {"w": made(2, 1, 8, 4)}}
    attention["attn_vec_einsum"] = {"w": made(2, 4, 8)}
    layer = {
        "attn": attention,
        "mlp": {"gating_einsum": made(2, 8, 8), "linear": made(8, 8)},
        "pre_attention_norm": {"scale": made(8)},
        "pre_ffw_norm": {"scale": made(8)},
    }
    return {"embedder": {"input_embedding": made(24, 8)}, "final_norm": {"scale": made(8)}, "layer_0": layer}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """One a way to store arrays, with the content of its files."""
    found = []
    for options in OPTIONS:
        folder = save_to(tmp_path_factory.mktemp("orbax") / "checkpoint", flat(tree()), **options)
        found.append((folder, {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}))
    return found


def damaged(content, chance, *, text):
    found = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4])):
        at = chance.randrange(len(found))
        kind = chance.random()
        if text and kind < 0.5:
            found[at] = chance.choice(b'0123456789[]{},:"-.eE')
        elif text and kind < 0.7:
            found[at:at] = chance.choice([b"99999999", b"null", b"-1", b"[", b"1e308", b'"'])
        elif kind < 0.6:
            found[at] = chance.randrange(256)
        elif kind < 0.8:
            found = found[:at] + found[at + chance.choice([1, 4, 50]) :] or bytearray(b"\0")
        elif kind < 0.9:
            found[at:at] = chance.randbytes(4)
        else:
            found[at : at + 8] = b"\xff" * 8
    return bytes(found)


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(160), pytest.param(range(160, 3000), marks=pytest.mark.slow)])
def test_whatever_is_wrong_with_a_file(checkpoints, seeds):
    """The headers most of all, which say how much is to be allocated."""
    before, read = peak(), 0
    device = jax.local_devices()[0]
    for seed in seeds:
        chance = random.Random(seed)
        folder, contents = checkpoints[seed % len(checkpoints)]
        headers = [path for path in contents if path.name in (*HEADERS, "manifest.ocdbt") or path.parent.name == "d"]
        path = chance.choice(headers if chance.random() < 0.8 else [path for path in contents if contents[path]])
        path.write_bytes(damaged(contents[path], chance, text=path.name in HEADERS))
        try:
            _, source, naming = open_orbax(folder, CONFIG)
            with source:
                place(source, naming, CONFIG, "float32", Layout(), device)
            read += 1
        except GemmaJaxError:
            pass
        finally:
            path.write_bytes(contents[path])
    assert 0.05 * len(seeds) < read < 0.9 * len(seeds)
    assert peak() - before < 300e6, "nothing is allocated for a shape that is only promised"


def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
