"""Google's QAT folders in the format of compressed-tensors stay packed, and mean the dense model that they pack."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save

from langchain_gemma_jax.errors import GemmaJaxError, TensorMismatchError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.quantized.compressed_tensors import open_compressed
from langchain_gemma_jax.models.compare import score
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS, numbers
from langchain_gemma_jax.models.packed.blocks import BlockMatrix
from langchain_gemma_jax.models.seams.tensor_source import Cut
from tests import tiny_gemma as tiny

SAID = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "quantization_status": "compressed",
    "kv_cache_scheme": None,
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "input_activations": None,
            "output_activations": None,
            "weights": {
                "num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 32,
                "dynamic": False, "actorder": None, "block_structure": None, "observer": "minmax",
            },
        }
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setitem(tiny.CONFIG, "hidden_size", 32)
    monkeypatch.setitem(tiny.CONFIG, "intermediate_size", 64)


def packed_and_dense(seed=0):
    """The tensors as published, and those that they stand for."""
    rng, stored, dense = np.random.default_rng(seed), {}, {}
    for name, weight in tiny.tiny_tensors(seed).items():
        if "_proj" not in name:
            stored[name] = dense[name] = weight.astype(ml_dtypes.bfloat16)
            continue
        outputs, inputs = weight.shape
        values = rng.integers(0, 16, weight.shape)
        scales = rng.uniform(0.01, 0.03, (outputs, inputs // 32)).astype(ml_dtypes.bfloat16)
        words = (values.reshape(outputs, -1, 8).astype(np.uint64) << np.arange(0, 32, 4, dtype=np.uint64)).sum(-1)
        stored[f"{name}_packed"] = words.astype(np.uint32).view(np.int32)
        stored[f"{name}_scale"] = scales
        stored[f"{name}_shape"] = np.array(weight.shape, np.int64)
        dense[name] = (values - 8) * np.repeat(scales.astype(np.float32), 32, axis=1)
    return stored, {name: weight.astype(np.float32) for name, weight in dense.items()}


def write(folder, tensors, said=SAID):
    folder.mkdir()
    for name, content in tiny.tiny_gemma().items():
        (folder / name).write_bytes(content)
    (folder / "model.safetensors").write_bytes(save(tensors))
    config = tiny.CONFIG | ({} if said is None else {"quantization_config": said})
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.long
def test_such_a_folder_stays_packed_and_is_the_dense_model(tmp_path):
    stored, dense = packed_and_dense()
    twin = write(tmp_path / "dense", dense, None)
    folder = write(tmp_path / "packed", stored)
    exact = {"dtype": "float32", "progress": False}
    with load(folder, activations="float32", **exact) as model, load(twin, **exact) as other:
        down = model.params["layers"][1]["down"]
        assert isinstance(down, BlockMatrix)
        found = numbers(BLOCK_FORMATS["INT4"], tuple(np.asarray(part) for part in down.parts))
        np.testing.assert_array_equal(found, dense["model.layers.1.mlp.down_proj.weight"])
        assert model.nbytes < 1.05 * sum(tensor.nbytes for name, tensor in stored.items() if "_shape" not in name)
        ours, theirs = score(model, "AB CD"), score(other, "AB CD")
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
        assert ours.best == theirs.best


def test_a_part_of_a_matrix_is_read_by_itself(tmp_path):
    folder = write(tmp_path / "packed", packed_and_dense()[0])
    packed, plain = "model.layers.1.mlp.down_proj.weight", "model.embed_tokens.weight"
    with open_compressed(folder, tiny.CONFIG, SAID)[1] as source:
        whole = np.concatenate(list(source.read_blocks(packed)))
        cuts = {"rows": Cut(packed, 0, 8, 24), "group": Cut(packed, 1, 32, 64), "plain": Cut(plain, 0, 3, 9)}
        part = source.cut(cuts)
        assert [part.shape(name) for name in cuts] == [(16, 64), (32, 32), (6, 32)]
        assert part.block_format("rows") == source.block_format(packed) == "INT4"
        np.testing.assert_array_equal(np.concatenate(list(part.read_blocks("rows"))), whole[8:24])
        np.testing.assert_array_equal(np.concatenate(list(part.read_blocks("group"))), whole[:, 1:])
        np.testing.assert_array_equal(part.read("plain"), source.read(plain)[3:9])
        (blocks,) = part.read_blocks("plain")
        assert blocks.tobytes() == source.read(plain)[3:9].tobytes()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"quant_method": "gptq"}, "found 'gptq'"),
        ({"format": "nvfp4-pack-quantized"}, "found the format 'nvfp4-pack-quantized'"),
        ({"config_groups": {}}, "expected config_groups"),
        ({"config_groups": {"a": 1}}, "expected 'a' to quantize weights"),
        ({"kv_cache_scheme": {"num_bits": 8}}, "no kv_cache_scheme"),
        ({"num_bits": 8}, "expected num_bits 4"),
        ({"symmetric": False}, "expected symmetric True"),
        ({"group_size": 128}, "expected group_size 32"),
        ({"strategy": "tensor"}, "expected strategy 'group'"),
        ({"actorder": "weight"}, "expected actorder None"),
        ({"input_activations": {"num_bits": 8}}, "weights and nothing else"),
    ],
)
def test_every_other_way_to_quantize_is_refused_by_name(tmp_path, change, says):
    said = json.loads(json.dumps(SAID))
    group = said["config_groups"]["group_0"]
    for name, value in change.items():
        (said if name in said or name == "quant_method" else group if name in group else group["weights"])[name] = value
    with pytest.raises(UnsupportedModelError, match=says):
        load(write(tmp_path / "x", packed_and_dense()[0], said), progress=False)


@pytest.mark.parametrize(
    ("part", "value", "says"),
    [
        ("scale", None, "a tensor .*weight_scale"),
        ("shape", None, "a tensor .*weight_shape"),
        ("shape", np.array([32, 32], np.int64), "to say"),
        ("shape", np.array([1 << 60, 1 << 60, 2], np.int64), "to say"),
        ("scale", np.zeros((32, 1), ml_dtypes.bfloat16), "weight_scale.* of shape"),
        ("scale", np.zeros((32, 2), np.float32), "weight_scale.* of shape"),
        ("packed", np.zeros((32, 8), np.float32), "as a matrix of I32"),
        ("packed", np.zeros((32, 2, 4), np.int32), "as a matrix of I32"),
        ("packed", np.zeros((31, 8), np.int32), "to say"),
        ("zero_point", np.zeros((32, 2), np.int32), "also"),
    ],
)
def test_parts_that_do_not_fit_are_typed_errors(tmp_path, part, value, says):
    stored, _ = packed_and_dense()
    stored[f"model.layers.1.mlp.down_proj.weight_{part}"] = value
    stored = {name: tensor for name, tensor in stored.items() if tensor is not None}
    with pytest.raises(TensorMismatchError, match=says):
        load(write(tmp_path / "x", stored), progress=False)


def test_fields_that_are_anything_are_typed_errors(tmp_path):
    folder = write(tmp_path / "x", packed_and_dense()[0])
    path, rng = folder / "config.json", np.random.default_rng(0)
    for seed in range(60):
        said = json.loads(json.dumps(SAID))
        at = said
        while rng.random() < 0.7 and any(isinstance(value, dict) for value in at.values()):
            at = next(value for value in at.values() if isinstance(value, dict))
        name = str(rng.choice(list(at)))
        at[name] = [None, 0, -1, 1 << 63, "", "x", [], [[]], {}, True, 1.5][seed % 11]
        path.write_text(json.dumps(tiny.CONFIG | {"quantization_config": said}))
        try:
            load(folder, dtype="float32", progress=False).close()
        except GemmaJaxError as error:
            found = str(error)
            assert len(found) < 1000
