"""Requantize a GGUF file by llama.cpp: the files, and its answers with them.

.envs/llama/bin/python tests/real/reference_llama_requantized.py FOLDER < asked.json > answers.json
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

import gguf
import llama_cpp
import numpy as np

asked, folder = json.load(sys.stdin), Path(sys.argv[1])

TYPES = {
    name.removeprefix("LLAMA_FTYPE_").partition("_")[2]: getattr(llama_cpp, name)
    for name in dir(llama_cpp)
    if name.startswith(("LLAMA_FTYPE_ALL_", "LLAMA_FTYPE_MOSTLY_"))
}


def requantized(source: Path, name: str) -> Path:
    """The file in a quantization, made once. All inputs of a matrix count as equally important."""
    path = folder / f"{source.stem}-as-{name}.gguf"
    if path.exists():
        return path
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = TYPES[name]
    params.allow_requantize = True
    matrices = [tensor for tensor in gguf.GGUFReader(source).tensors if len(tensor.shape) > 1]
    inputs = [int(tensor.shape[0]) for tensor in matrices]
    ones = {count: (ctypes.c_float * count)(*[1.0] * count) for count in inputs}
    entries = (llama_cpp.llama_model_imatrix_data * (len(matrices) + 1))()
    for entry, tensor, count in zip(entries, matrices, inputs, strict=False):
        entry.name, entry.data, entry.size = tensor.name.encode(), ones[count], count
    params.imatrix = entries
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")  # another process may be at it
    if llama_cpp.llama_model_quantize(str(source).encode(), str(unfinished).encode(), ctypes.byref(params)):
        sys.exit(f"llama.cpp cannot make {name}")
    unfinished.rename(path)
    return path


def scores(model: llama_cpp.Llama, ids: list[int]) -> np.ndarray:
    model.reset()
    model.eval(ids)
    return np.array(model.scores[: len(ids)], np.float64)


def answer(model: llama_cpp.Llama, ids: list[int], count: int) -> dict[str, list]:
    """The most likely tokens one after the other, and by how much each is before the next best."""
    model.reset()
    model.eval(ids)
    tokens, margins = [], []
    for _ in range(count):
        last = np.array(model.scores[model.n_tokens - 1])
        best = np.partition(last, -2)[-2:]
        tokens.append(int(last.argmax()))
        margins.append(float(best[1] - best[0]))
        model.eval(tokens[-1:])
    return {"tokens": tokens, "margins": margins}


def opened(path: Path) -> llama_cpp.Llama:
    """The model in a file, with keys and values in float32."""
    most = max(len(asked["page"]), *(len(ids) + asked["count"] for ids in asked["prompts"]))
    options = {"n_ctx": most, "n_batch": most, "logits_all": True, "verbose": False, "n_threads": os.cpu_count()}
    return llama_cpp.Llama(str(path), type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32, **options)


def loss(model: llama_cpp.Llama) -> float:
    found = scores(model, asked["page"])[:-1]
    likely = found - found.max(-1, keepdims=True)
    likely -= np.log(np.exp(likely).sum(-1, keepdims=True))
    return float(-likely[np.arange(len(found)), asked["page"][1:]].mean())


def said(path: Path) -> dict[str, object]:
    """Answer with the file packed, where activations are rounded, and with the dense numbers that it stands for."""
    packed = loss(opened(path))
    dense = requantized(path, "F32")
    model = opened(dense)
    found = {"path": str(path), "packed": packed, "dense": loss(model)}
    found["answers"] = [answer(model, ids, asked["count"]) for ids in asked["prompts"]]
    dense.unlink()  # a gigabyte
    return found


folder.mkdir(parents=True, exist_ok=True)
source = Path(asked["file"])
found = {
    "types": [*TYPES],
    "files": {name: said(requantized(source, name)) for name in asked["names"]},
    "made": [str(requantized(source, name)) for name in asked["made"]],
}
json.dump(found, sys.stdout)
