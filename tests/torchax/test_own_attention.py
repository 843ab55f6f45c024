"""Keys and values of any two shapes are stored as two of one shape, and come back as they were."""

from __future__ import annotations

import random

import jax
import numpy as np

from langchain_gemma_jax.models.configuration.model_config import CacheLayer
from langchain_gemma_jax.models.torchax.own_attention import KeptShapes, layout_of


def test_what_is_stored_comes_back():
    rng = random.Random(4)
    for seed in range(20):
        shapes = [(rng.randint(1, 3), rng.randint(1, 9)) for _ in range(2)]
        kept = KeptShapes(*shapes)
        keys = jax.random.split(jax.random.key(seed), 2)
        both = [jax.random.normal(key, (2, heads, 5, dim)) for key, (heads, dim) in zip(keys, shapes, strict=True)]
        stored = kept.packed(*both)
        assert {each.shape for each in stored} == {(2, kept.layer.kv_heads, 5, kept.layer.head_dim)}
        assert all(np.array_equal(*pair) for pair in zip(kept.unpacked(*stored), both, strict=True))


def test_little_more_is_stored_than_there_is():
    latents = KeptShapes((1, 512), (1, 64))  # DeepSeek 3
    assert latents.layer == CacheLayer(1, 288)
    assert KeptShapes((1, 3), (1, 2)).layer == CacheLayer(1, 3), "an odd number takes one more"
    alike = KeptShapes((4, 16), (4, 16))
    assert layout_of([alike, latents]) == (CacheLayer(4, 16), CacheLayer(1, 288))
