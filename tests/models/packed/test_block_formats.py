"""Each block format means the numbers that its authors' package says, to the last bit; so do products with it."""

from __future__ import annotations

import gguf
import ml_dtypes
import numpy as np
import pytest

from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS, IN_GGUF, numbers
from langchain_gemma_jax.models.packed.splitting import apart
from tests.models.gguf.make import dequantize


def any_blocks(kind, rng, rows=6):
    """Any bytes at all: scales that are infinite, not a number, or too small for anything else included."""
    blocks = 3 if kind.elements > 1 else 70
    return rng.integers(0, 256, (rows, blocks, kind.nbytes), dtype=np.uint8)


def reference(kind, raw):
    flat = raw.reshape(len(raw), -1)
    if kind.name in {"F32", "F16"}:
        return flat.view(np.float32 if kind.name == "F32" else np.float16).astype(np.float32)
    if kind.name == "INT4":  # Q4_0, but for the scale's dtype
        scales = raw[..., :2].copy().view(ml_dtypes.bfloat16).astype(np.float32)
        ones = np.concatenate([np.broadcast_to(np.array([0, 0x3C], np.uint8), raw[..., :2].shape), raw[..., 2:]], -1)
        found = gguf.dequantize(ones.reshape(len(raw), -1), gguf.GGMLQuantizationType.Q4_0)
        return (scales * found.reshape(*raw.shape[:-1], 32)).reshape(len(raw), -1)
    return dequantize(flat, gguf.GGMLQuantizationType[kind.name])


def test_every_type_that_holds_weights_is_there():
    """The others are of activations (Q8_1, Q8_K), or of whole numbers without a scale, or take twice what F32 does."""
    theirs = {kind.name for kind in gguf.GGMLQuantizationType}
    assert theirs - set(IN_GGUF) == {"Q8_1", "Q8_K", "I8", "I16", "I32", "I64", "F64"}


@pytest.mark.parametrize("kind", BLOCK_FORMATS.values(), ids=lambda kind: kind.name)
def test_numbers_are_the_references_to_the_last_bit(kind):
    for seed in range(10):
        raw = any_blocks(kind, np.random.default_rng(seed), 170)  # together above 5,000 blocks
        with np.errstate(all="ignore"):
            ours, theirs = numbers(kind, apart(kind, raw)), reference(kind, raw)
        np.testing.assert_array_equal(ours.view(np.uint32), theirs.view(np.uint32))
