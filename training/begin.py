"""Where a run begins: at nothing, where another one ended, or as a smaller model that is made larger."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.configuration.abstract import Path as TreePath
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.params import Params, assemble
from training import tokenizer
from training.grow import grown

_POST_NORM_START = 0.3  # each layer adds little at first
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def at_nothing(config: ModelConfig, seed: str) -> Params:
    """Matrices scaled by their inputs. Drawn by NumPy, so that they are the same whatever the JAX release."""
    rng = _rng(seed)
    arrays: list[tuple[TreePath, jax.Array]] = []
    for path, spec in walk(abstract(config)):
        if len(spec.shape) == 2:
            array = rng.standard_normal(spec.shape, np.float32) * np.float32(spec.shape[1] ** -0.5)
        else:
            array = np.full(spec.shape, _POST_NORM_START if str(path[-1]).startswith("post_") else 1.0, np.float32)
        arrays.append((path, jnp.asarray(array)))
    return assemble(arrays)


def where_it_ended(folder: Path, config: ModelConfig, seed: str) -> Params:
    """The weights of an exported model: as they are if it is of this size, grown if it is smaller."""
    model = load(folder, recipe=Recipe("float32"), progress=False)
    if model.config.layers == config.layers and model.config.width == config.width:
        return model.params
    small = jax.tree.map(np.asarray, model.params)
    return cast("Params", jax.tree.map(jnp.asarray, grown(small, model.config, config, _rng(seed))))


def prepare(run: Path, begun: Path | None = None) -> None:
    """The run's folder with a tokenizer in it: a new one, or that of the exported model it begins as."""
    folder = run / "tokenizer"
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / _TOKENIZER[0]).exists():
        return
    if begun is None:
        tokenizer.save(tokenizer.build(), folder)
    else:
        for name in _TOKENIZER:
            shutil.copyfile(begun / name, folder / name)


def _rng(seed: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(seed.encode()))
