"""Dense matrices are packed while they are loaded, with no larger error than the formats need."""

from __future__ import annotations

import time

import gguf
import numpy as np
import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.loading.load import load, load_again
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS, numbers
from langchain_gemma_jax.models.packed.blocks import BlockMatrix
from langchain_gemma_jax.models.packed.quantize import Quantized, quantized
from langchain_gemma_jax.models.recipes import Plan, Recipe
from langchain_gemma_jax.models.seams.block_forms import DEFAULT
from langchain_gemma_jax.models.seams.weights import total_bytes

LAYER = ("layers", 0, "down")


@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("transposed", [False, True])
def test_errors_are_no_larger_than_the_reference_packers(weights, transposed):
    storage = quantized(weights, DEFAULT)
    kind = "Q8_0" if weights == "int8" else "Q4_0"
    for seed in range(10):
        dense = np.random.default_rng(seed).standard_t(4, (2, 24, 96)).astype(np.float32)
        dense[0, 0], dense[0, 1, :3] = 0, (1e-7, -3e4, 2)
        spec = ArraySpec(dense.shape, "float32", transposed)
        packed = storage.pack(LAYER, spec, np.ascontiguousarray(dense.swapaxes(1, 2)) if transposed else dense)
        shapes = [(part.shape, part.dtype) for part in packed.parts]
        assert shapes == [(each.shape, np.dtype(each.dtype)) for each in storage.abstract(LAYER, spec).parts]
        ours = numbers(BLOCK_FORMATS[packed.kind], packed.parts)
        raw = gguf.quantize(dense, gguf.GGMLQuantizationType[kind])
        theirs = gguf.dequantize(raw, gguf.GGMLQuantizationType[kind])
        assert np.square(ours - dense).sum() <= np.square(theirs - dense).sum() * 1.0001
        assert not ours[0, 0].any()
        assert packed.nbytes == raw.nbytes


def test_tables_keep_eight_bits_and_rows_that_are_no_whole_groups_stay_dense():
    storage, spec = quantized("int4", DEFAULT), ArraySpec((64, 96), "bfloat16")
    assert [storage.abstract(path, spec).kind for path in (("embed",), ("head",), LAYER)] == ["Q8_0", "Q8_0", "Q4_0"]
    odd = ArraySpec((64, 40), "bfloat16")
    assert storage.abstract(LAYER, odd) is odd


@pytest.mark.parametrize(("weights", "share"), [("int8", 0.55), ("int4", 0.45)])
def test_a_folder_is_loaded_so(weights, share):
    with load("sprout-s", weights=weights, dtype="bfloat16", progress=False) as model:
        assert isinstance(model.params["layers"][0]["gate_up"], BlockMatrix)
        assert model.nbytes == total_bytes(model.recipe.abstract(model.config))
        dense = total_bytes(Recipe("bfloat16").abstract(model.config))
        assert model.nbytes < share * dense
        again = load_again(model, progress=False)
        for before, after in zip(model.params["embed"].parts, again.params["embed"].parts, strict=True):
            np.testing.assert_array_equal(before, after)
        again.close()


def test_no_two_matrices_are_dense_at_once(monkeypatch):
    dense, most, pack = [], [], Quantized.pack

    def counted(storage, path, spec, array):
        dense.append(path)
        most.append(len(dense))
        time.sleep(0.002)
        found = pack(storage, path, spec, array)
        dense.remove(path)
        return found

    monkeypatch.setattr(Quantized, "pack", counted)
    load("sprout-s", weights="int8", progress=False).close()
    assert len(most) > 10
    assert max(most) == 1


def test_what_cannot_be_asked_for(tmp_path):
    with pytest.raises(InputError, match="weights: expected one of int8, int4 or None, found 'int3'"):
        load("sprout-s", weights="int3", progress=False)
    recipe = Recipe("float32", Plan(), storage=quantized("int8", DEFAULT))
    with pytest.raises(InputError, match="with a recipe that stores them"):
        load("sprout-s", weights="int8", recipe=recipe, progress=False)
