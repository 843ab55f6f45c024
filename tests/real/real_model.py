"""Where ``scripts/real`` puts the real Gemma 3 270M (pretrained, Q4_K_M), and the dense model that it stands for."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
from safetensors.numpy import save_file

from benchmarks.checkpoint import CONFIG
from langchain_gemma_jax.models.checkpoint.hf_names import HfNaming
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.gguf.gguf_tokenizer import sentence_pieces
from langchain_gemma_jax.models.gguf.opening import open_gguf
from langchain_gemma_jax.models.model import Model, assemble
from langchain_gemma_jax.models.packed.blocks import BlockMatrix, Stacked
from langchain_gemma_jax.models.packed.kinds import KINDS, numbers
from langchain_gemma_jax.models.recipes import choose_recipe

ROOT = Path(__file__).parents[2]
FILE = ROOT / "build" / "real" / "gemma-3-270m-Q4_K_M.gguf"
FOLDER = FILE.parent / "dense"


def dequantised(model: Model) -> Model:
    """The dense float32 model that a packed one stands for."""
    recipe = choose_recipe("float32")

    def dense(path, spec):
        found = at(model, path)
        return jax.device_put(np.ascontiguousarray(found.T if spec.transposed else found), model.device)

    specs = walk(abstract(model.config, "float32", recipe.layout))
    params = assemble((path, dense(path, spec)) for path, spec in specs)
    return replace(model, params=params, recipe=recipe, name="dequantised", read_from=None)


def dense_folder(model: Model) -> Path:
    """The same as a folder of Hugging Face's, which transformers reads too; made once."""
    if FOLDER.exists():
        return FOLDER
    made = FOLDER.with_name("dense.unfinished")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    config, naming, tensors = model.config, HfNaming("model.", "lm_head.weight"), {}
    for path, _ in walk(abstract(config, "float32")):
        whole, row = at(model, path), 0
        if str(path[-1]).endswith("norm"):
            whole = whole - np.float32(1)  # as it is stored there
        for part in naming(replace(config, norm_offset=1.0), path):
            tensors[part.name] = np.ascontiguousarray(whole[row : row + part.shape[0]]).reshape(part.shape)
            row += part.shape[0]
    save_file(tensors, made / "model.safetensors", metadata={"format": "pt"})
    (made / "config.json").write_text(json.dumps(dict(CONFIG) | {"torch_dtype": "float32"}))
    opened = open_gguf(FILE)
    with opened.tensors:
        (made / "tokenizer.model").write_bytes(sentence_pieces(opened.metadata, FILE).message())
    made.rename(FOLDER)
    return FOLDER


def at(model: Model, path) -> np.ndarray:
    """The numbers of one array of the model's, dense."""
    found = model.params
    for step in path:
        found = found[step]
    return _numbers(found)


def _numbers(weight):
    if isinstance(weight, Stacked):
        return np.concatenate([_numbers(each) for each in weight.weights])
    if isinstance(weight, BlockMatrix):
        return numbers(KINDS[weight.kind], tuple(np.asarray(part) for part in weight.parts))
    return np.asarray(weight)


def asked_of(reference: str, where: Path, asked: object):
    """What a reference library answers, in an environment of its own. None: there is no such environment."""
    python = ROOT / ".envs" / reference / "bin" / "python"
    if not python.exists():
        return None
    script = ROOT / "tests" / "real" / f"reference_{reference}.py"
    done = subprocess.run(
        [python, script, where], input=json.dumps(asked), capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
