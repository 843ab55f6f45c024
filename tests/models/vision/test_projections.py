"""Patches to soft tokens, computed by hand."""

from __future__ import annotations

import numpy as np

from langchain_gemma_jax.models.vision.projections import EachPatch, Pooled


def test_squares_of_patches_are_averaged_and_the_edge_that_makes_no_square_is_left_out():
    numbers, projection = np.random.default_rng(0), Pooled(2)
    x = numbers.normal(size=(25, 3)).astype(np.float32)  # five a side: the last row and column are in no square
    arrays = {"soft_norm": np.array([1.0, 2, 3], np.float32), "project": np.eye(3, 4, dtype=np.float32)}
    found = np.asarray(projection.soft(arrays, x, 5, 1e-6))
    first = x.reshape(5, 5, 3)[:2, :2].mean((0, 1))
    np.testing.assert_allclose(found[0, :3], first / np.sqrt((first**2).mean()) * [1, 2, 3], rtol=1e-4)
    assert (found.shape, projection.soft_tokens(5)) == ((4, 4), 4)
    assert {name: tensor.shape for name, tensor in projection.tensors(3, 4).items()} == {
        name: array.shape for name, array in arrays.items()
    }


def test_each_patch_is_a_soft_token():
    x, projection = np.arange(12, dtype=np.float32).reshape(4, 3), EachPatch()
    arrays = {"project": np.array([[1.0, 0, 0], [0, 1, 1]], np.float32), "project_bias": np.array([5.0, 7], np.float32)}
    found = np.asarray(projection.soft(arrays, x, 2, 1e-6))
    np.testing.assert_array_equal(found, np.stack([x[:, 0] + 5, x[:, 1] + x[:, 2] + 7], axis=1))
    assert projection.soft_tokens(2) == 4
    assert {name: tensor.shape for name, tensor in projection.tensors(3, 2).items()} == {
        name: array.shape for name, array in arrays.items()
    }
