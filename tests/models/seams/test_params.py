"""The tree of a model's arrays."""

from __future__ import annotations

import jax
import numpy as np

from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, Rope
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.seams.params import assemble, leaves

CONFIG = ModelConfig(
    generation="gemma",
    vocab_size=8,
    width=4,
    heads=1,
    layers=(LayerConfig(kv_heads=1, head_dim=4, ffw_width=4, rope=Rope(1e4)),),
    max_context=16,
    attention_scale=1.0,
)


def make():
    def array(*shape):
        return jax.device_put(np.ones(shape, np.float32), jax.devices()[0])

    params = {"embed": array(8, 4), "layers": [{"down": array(4, 4), "scale": array()}, {"down": array(4, 4)}]}
    return Model(Gemma(CONFIG), params, tokenizer=None, recipe=None, name="tiny")


def test_leaves_are_every_array():
    assert [array.shape for array in leaves(make().params)] == [(8, 4), (4, 4), (), (4, 4)]


def test_a_tree_is_assembled_in_the_order_of_its_shapes():
    config = CONFIG.replace(layers=CONFIG.layers * 12, qk_norm=True)
    paths = [path for path, _ in walk(abstract(config))]
    tree = assemble((path, path) for path in paths)
    assert list(leaves(tree)) == paths
    assert [*tree] == [*abstract(config)]
    assert tree["layers"][11]["q_norm"] == ("layers", 11, "q_norm")
