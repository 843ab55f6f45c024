"""Tensors of encoders by the names of another program: each number is the one that is stored."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from langchain_gemma_jax.models.loading.load import load
from tests.models.encoders.make import converted, is_packed, write
from tests.parity.media_models import media_tensor, plain_name


@pytest.mark.parametrize("kind", ["BF16", "F16", "Q8_0"])
def test_each_number_is_the_one_that_is_stored(kind, tmp_path):
    for name in ("gemma-4-e4b-vision", "gemma-4-12b-unified"):
        model, packed = load(write(tmp_path / name, name, kind), dtype="float32"), 0
        with model.encoders.open() as read:
            for encoder in model.encoders.encoders:
                for tensor in (each for part in encoder.tensors().parts() for each in part.values()):
                    value = media_tensor(tensor.name, tensor.stored or tensor.shape, name, 0)
                    _, there = converted(plain_name(tensor.name), value, name)
                    if is_packed(there, kind):
                        packed += 1
                        stored = gguf.GGMLQuantizationType[kind]
                        there = gguf.dequantize(gguf.quantize(there, stored), stored).reshape(there.shape)
                    found = np.asarray(read(tensor), np.float32)
                    # What was put into another order is so in both: compared by its numbers alone.
                    assert np.allclose(np.sort(found, None), np.sort(unsoftened(tensor, there), None), 1e-5), tensor
        assert packed


def unsoftened(tensor, stored):
    return np.log(np.expm1(stored.astype(np.float64))) if tensor.name.endswith("per_dim_scale") else stored


def test_files_of_an_early_converter_have_two_names_exchanged(tmp_path):
    def exchange(_, tensors):
        for index in range(3):
            for end in ("weight", "bias"):
                up, down = (f"v.blk.{index}.ffn_{way}.{end}" for way in ("up", "down"))
                tensors[up], tensors[down] = tensors[down], tensors[up]

    models = [load(write(tmp_path / str(at), change=each), dtype="float32") for at, each in enumerate((None, exchange))]
    trees = [model.encoders.read(0, "float32", model.placement) for model in models]
    for one, other in zip(*(tree.layers for tree in trees), strict=True):
        assert all((np.asarray(one[key]) == np.asarray(other[key])).all() for key in one)
