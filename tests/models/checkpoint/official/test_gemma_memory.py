from __future__ import annotations

import os
import subprocess
import sys
from types import MappingProxyType

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.checkpoint.official.gemma_memory import TreeSource
from langchain_gemma_jax.models.checkpoint.official.gemma_names import GemmaNaming


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
def test_trees_of_numpy_and_of_jax_are_read(make, tiny, official_tree, put, put_by_hf_names):
    tree = official_tree(tiny)

    found = put(TreeSource(jax.tree.map(make, tree), "the tree"), GemmaNaming(), tiny)

    jax.tree.map(np.testing.assert_array_equal, found, put_by_hf_names(tiny, tree))


def test_any_kind_of_mapping_will_do(gemma3, official_tree):
    tree = official_tree(gemma3, dtype=ml_dtypes.bfloat16)
    with TreeSource({"params": MappingProxyType(tree)}, "the tree") as source:
        assert source.dtype("layer_5/mlp/linear") == "bfloat16"
        assert source.shape("layer_5/mlp/linear") == (20, 12)
        np.testing.assert_array_equal(source.read("layer_5/mlp/linear"), tree["layer_5"]["mlp"]["linear"])


def test_an_array_that_a_training_step_took_over_is_named(gemma3, official_tree):
    tree = jax.tree.map(jnp.asarray, official_tree(gemma3))
    tree["layer_1"]["mlp"]["linear"].delete()

    with pytest.raises(TensorMismatchError, match=r"the tree: expected an array at layer_1/mlp/linear, .* donated"):
        TreeSource(tree, "the tree")


@pytest.mark.parametrize("leaf", [None, 3, [1.0], jax.ShapeDtypeStruct((20, 12), np.float32)])
def test_what_is_no_array_is_named(leaf, gemma3, official_tree):
    tree = official_tree(gemma3)
    tree["layer_1"]["mlp"]["linear"] = leaf

    with pytest.raises(TensorMismatchError, match=rf"an array at layer_1/mlp/linear, found {type(leaf).__name__}"):
        TreeSource(tree, "the tree")


@pytest.mark.long
def test_a_sharded_array_is_read_whole_and_leaves_no_copy_with_its_owner():
    program = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from langchain_gemma_jax.models.checkpoint.official.gemma_memory import TreeSource

table = np.arange(32, dtype=np.float32).reshape(8, 4)
mesh = Mesh(jax.devices(), "x")
array = jax.device_put(table, NamedSharding(mesh, PartitionSpec("x")))
source = TreeSource({"embedder": {"input_embedding": array}}, "the tree")
assert len(array.addressable_shards) == 2
np.testing.assert_array_equal(source.read("embedder/input_embedding"), table)
assert array._npy_value is None
"""
    two_devices = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | two_devices)
