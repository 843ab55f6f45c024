"""The real Gemma 3 270M as ``scripts/real`` puts it together, a Q4_K_M file, and what is made of it: dense, and Q8_0.

All hold the same numbers: those that the file's blocks stand for.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from benchmarks.work.checkpoint import CONFIG
from langchain_gemma_jax.models.checkpoint.hf_names import HfNaming
from langchain_gemma_jax.models.configuration.abstract import Path as TreePath
from langchain_gemma_jax.models.configuration.abstract import abstract, numpy_dtype, walk
from langchain_gemma_jax.models.gguf.gguf_tokenizer import sentence_pieces
from langchain_gemma_jax.models.gguf.opening import open_gguf
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS, numbers
from langchain_gemma_jax.models.packed.blocks import BlockMatrix, Stacked

FOLDER = Path(__file__).parents[2] / "build" / "real"
FILE = FOLDER / "gemma-3-270m-Q4_K_M.gguf"
Q8_0 = FOLDER / "gemma-3-270m-Q8_0.gguf"

Numbers = npt.NDArray[Any]


def dense_folder(model: Model, dtype: str = "float32") -> Path:
    """The model of the file as a folder of Hugging Face's, made once."""
    folder = FOLDER / dtype
    if folder.exists():
        return folder
    made = folder.with_name(f"{dtype}.unfinished")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    naming, tensors = HfNaming("model.", "lm_head.weight"), {}
    as_named = replace(model.config, norm_offset=1.0)
    for path, _ in walk(abstract(model.config, "float32")):
        whole, row = array_at(model, path), 0
        if str(path[-1]).endswith("norm"):
            whole = whole - np.float32(1)  # as it is stored there
        for part in naming(as_named, path):
            found = whole[row : row + part.shape[0]].reshape(part.shape)
            tensors[part.name] = np.ascontiguousarray(found.astype(numpy_dtype(dtype)))
            row += part.shape[0]
    save_file(tensors, made / "model.safetensors", metadata={"format": "pt"})
    (made / "config.json").write_text(json.dumps({**CONFIG, "torch_dtype": dtype}))
    opened = open_gguf(FILE)
    with opened.checkpoint.tensors:
        (made / "tokenizer.model").write_bytes(sentence_pieces(opened.metadata, FILE).message())
    made.rename(folder)
    return folder


def q8_0_file() -> Path:
    """The model of the file with every matrix in eight bits, made once."""
    return file_in("Q8_0")


def file_in(kind: str) -> Path:
    """The model of the file with every matrix in one kind of numbers, made once by the format's own package."""
    path = FOLDER / f"gemma-3-270m-{kind}.gguf"
    if path.exists() or path == FILE:
        return path
    unfinished = path.with_suffix(".unfinished")
    reader = gguf.GGUFReader(FILE)
    writer = gguf.GGUFWriter(unfinished, "gemma3")
    copy_fields(reader, writer, {})
    stored = gguf.GGMLQuantizationType[kind]
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        if values.ndim == 1:
            writer.add_tensor(tensor.name, values)
        else:
            writer.add_tensor(tensor.name, gguf.quantize(values, stored), raw_dtype=stored)
    finish(writer)
    unfinished.rename(path)
    return path


def copy_fields(
    reader: gguf.GGUFReader, writer: gguf.GGUFWriter, changed: Mapping[str, object], *, without: str = ""
) -> None:
    """Give one file what another one says of its model and of its vocabulary, but for what is ``changed``.

    ``without``: the beginning of names that are left out.
    """
    for name, entry in reader.fields.items():
        if without and name.startswith(without):
            continue
        if not name.startswith("GGUF.") and name != "general.architecture":
            kind = entry.types[0]
            inner = entry.types[-1] if kind is gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, changed.get(name, entry.contents()), kind, sub_type=inner)


def finish(writer: gguf.GGUFWriter) -> None:
    """Write everything that was added."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def array_at(model: Model, path: TreePath) -> Numbers:
    """The numbers of one array of a model's, dense."""
    found: Any = model.params
    for step in path:
        found = found[step]
    return np.concatenate(list(_numbers(found)))


def _numbers(weight: Any) -> Iterator[Numbers]:
    if isinstance(weight, Stacked):
        for each in weight.weights:
            yield from _numbers(each)
    elif isinstance(weight, BlockMatrix):
        yield numbers(BLOCK_FORMATS[weight.kind], tuple(np.asarray(part) for part in weight.parts))
    else:
        yield np.asarray(weight)


def bytes_of(paths: Sequence[Path]) -> int:
    """The bytes of files, and of folders' weights."""
    return sum(
        path.stat().st_size if path.is_file() else sum(each.stat().st_size for each in path.glob("*.safetensors"))
        for path in paths
    )
