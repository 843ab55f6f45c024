"""The tree of a model's arrays."""

from __future__ import annotations

import numpy as np

from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.seams.params import assemble, leaves
from tests.parity.tiny import small


def test_leaves_are_every_array():
    embed, down, scale = (np.ones(shape, np.float32) for shape in ((8, 4), (4, 4), ()))
    tree = {"embed": embed, "layers": [{"down": down, "scale": scale}, {"down": down}]}
    assert [array.shape for array in leaves(tree)] == [(8, 4), (4, 4), (), (4, 4)]


def test_a_tree_is_assembled_in_the_order_of_its_shapes():
    config = small("gemma-3-270m")
    paths = [path for path, _ in walk(abstract(config))]
    tree = assemble((path, path) for path in paths)
    assert list(leaves(tree)) == paths
    assert [*tree] == [*abstract(config)]
    assert tree["layers"][-1]["q_norm"] == ("layers", len(config.layers) - 1, "q_norm")
