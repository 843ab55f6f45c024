"""The tensors of one GGUF file, or of its shards."""

from __future__ import annotations

import re
from pathlib import Path

import gguf
import numpy as np
import pytest

from langchain_gemma_jax.errors import (
    CheckpointNotFoundError,
    CorruptCheckpointError,
    TensorMismatchError,
    UnsafeCheckpointError,
)
from langchain_gemma_jax.models.gguf.gguf_source import open_source
from langchain_gemma_jax.models.gguf.opening import open_gguf
from langchain_gemma_jax.models.loading.load import load
from tests.models.gguf.make import CONFIGS, file_of, of_one_kind, small_tokenizer, write


@pytest.mark.parametrize(
    ("name", "number", "size", "says"),
    [
        (
            "blk.1.ffn_down.weight",
            9,
            40,
            r"'blk.1.ffn_down.weight' in F32, .*Q4_0, .*Q1_0, found Q8_1, in a file of 3 kin",
        ),
        ("blk.0.attn_q.weight", 28, 8, r"'blk.0.attn_q.weight' in .*found F64"),
        ("blk.0.attn_norm.weight", 8, 34, r"'blk.0.attn_norm.weight' in float32.*found Q8_0"),
        ("token_embd.weight", None, 0, "expected a tensor 'token_embd.weight'"),
        ("blk.1.attn_k.weight", None, 0, "expected a tensor 'blk.1.attn_k.weight'"),
        ("blk.1.attn_k.weight", 0, 4, r"'blk.1.attn_k.weight' of shape \[128, 256\]"),
    ],
)
def test_a_tensor_in_a_format_that_is_not_read_of_another_shape_or_missing(tmp_path, name, number, size, says):
    def change(writer):
        add = writer.add_tensor

        def other(given, tensor, raw_dtype=None):
            if given != name:
                add(given, tensor, raw_dtype=raw_dtype)
            elif number == 0:
                add(given, np.zeros((32, 32), np.float32))
            elif number is not None:
                rows = 1 if tensor.ndim < 2 else len(tensor)
                shape = (8 * size,) if tensor.ndim < 2 else (rows, 8 * size)
                add(given, np.zeros(shape, np.uint8), raw_dtype=gguf.GGMLQuantizationType(number))

        writer.add_tensor = other

    path = file_of(tmp_path / "x.gguf", change=change, tokenizer=small_tokenizer())
    with pytest.raises(TensorMismatchError, match=says):
        load(path, dtype="float32", progress=False)


@pytest.mark.parametrize("named", ["x.gguf", "./x.gguf", ".", "", "../x"])
def test_whatever_a_file_or_a_folder_is_called_by_the_error_names_it(tmp_path, monkeypatch, named):
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    path = file_of(tmp_path / "x" / "x.gguf", tokenizer=small_tokenizer())
    content = path.read_bytes().replace(b"blk.1.attn_k.weight", b"blk.1.attn_X.weight")
    path.write_bytes(content)
    with pytest.raises(TensorMismatchError) as error:
        load(Path(named), dtype="float32", progress=False)
    assert Path(error.value.path).name in {"x", "x.gguf"}
    assert Path(error.value.path).exists()
    assert str(error.value).startswith(f"{error.value.path}: expected the tensors of a gemma3")
    for nothing in ("", ".", "..", Path()):
        assert Path(str(TensorMismatchError(nothing, "a", "b")).partition(":")[0]).is_absolute()


def shards(tmp_path, **options):
    write(tmp_path / "m.gguf", CONFIGS["gemma3"], of_one_kind("Q8_0"), split_max_tensors=9, **options)
    return sorted(tmp_path.glob("*.gguf"))


def test_a_model_in_shards_is_opened_by_any_of_them(tmp_path):
    whole = file_of(tmp_path / "whole.gguf")
    with open_source(whole) as source:
        expected = {name: source.shape(name) for name in source.names()}
    whole.unlink()
    paths = shards(tmp_path)
    assert len(paths) > 2
    for path in paths:
        model = open_gguf(path)
        with model.checkpoint.tensors as source:
            assert {name: source.shape(name) for name in source.names()} == expected
    paths[1].rename(tmp_path / "away")
    with pytest.raises(CheckpointNotFoundError, match=rf"no {re.escape(paths[1].name)}"):
        open_gguf(paths[0])
    paths[2].rename(paths[1])
    (tmp_path / "away").rename(paths[2])
    with pytest.raises(CorruptCheckpointError, match=r"split\.no"):
        open_gguf(paths[0])


def test_a_link_that_was_named_is_followed_and_one_in_a_shards_place_is_not(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").mkdir()
    whole = file_of(tmp_path / "elsewhere" / "x.gguf")
    (tmp_path / "here" / "y.gguf").symlink_to(whole)
    open_gguf(tmp_path / "here" / "y.gguf").checkpoint.tensors.close()
    whole.unlink()
    for path in shards(tmp_path / "elsewhere"):
        (tmp_path / "here" / path.name).symlink_to(path)
    with pytest.raises(UnsafeCheckpointError, match="a link to"):
        open_gguf(min((tmp_path / "here").glob("m-*.gguf")))
    with pytest.raises(CheckpointNotFoundError):
        open_gguf(tmp_path / "here" / "gone.gguf")


def test_a_shard_by_another_name_is_no_model(tmp_path):
    first = shards(tmp_path)[0]
    first.rename(tmp_path / "model.gguf")
    with pytest.raises(CorruptCheckpointError, match=r"split\.count"):
        open_gguf(tmp_path / "model.gguf")


def test_a_cut_off_file_is_said_to_be_incomplete(tmp_path):
    path = file_of(tmp_path / "x.gguf")
    content = path.read_bytes()
    path.write_bytes(content[:-33])
    with pytest.raises(CorruptCheckpointError, match="incomplete"):
        open_gguf(path)
