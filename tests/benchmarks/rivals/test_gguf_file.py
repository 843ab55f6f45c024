"""Runs where the ``gguf`` package is: it is no dependency of this one."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file

from benchmarks.work.checkpoint import shapes, write_checkpoints
from tests.benchmarks.work.test_checkpoint import TINY

gguf = pytest.importorskip("gguf")


@pytest.fixture
def gguf_file():
    from benchmarks.rivals import gguf_file

    return gguf_file


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_numbers_come_back(gguf_file, tmp_path, dtype):
    write_checkpoints(tmp_path, TINY)
    gguf_file.write_gguf(tmp_path / "float32", tmp_path / "model.gguf", dtype)
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "model.gguf").tensors}
    original = load_file(tmp_path / "float32" / "model.safetensors")
    assert set(stored) == {gguf_file.gguf_name(name) for name in original}
    for name, values in original.items():
        tensor = stored[gguf_file.gguf_name(name)]
        found = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(values.shape)
        np.testing.assert_array_equal(found, values + 1 if values.ndim == 1 else values)


def test_every_tensor_has_a_name(gguf_file):
    names = [gguf_file.gguf_name(name) for name, _ in shapes(TINY)]
    assert len(set(names)) == len(names)
    assert {"token_embd.weight", "output_norm.weight", "blk.1.ffn_down.weight"} <= set(names)


def test_a_checkpoint_in_another_dtype_is_refused(gguf_file, tmp_path):
    write_checkpoints(tmp_path, TINY)
    with pytest.raises(ValueError, match="in F32, found BF16"):
        gguf_file.write_gguf(tmp_path / "bfloat16", tmp_path / "model.gguf", "bfloat16")
    assert not (tmp_path / "model.gguf").exists()
