"""The real Gemma 3 270M for tests: the dense model that its file stands for, and other libraries' answers."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from benchmarks.files.real_files import FILE, array_at, dense_folder
from benchmarks.running.contenders import ENVIRONMENTS
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.recipes import choose_recipe
from langchain_gemma_jax.models.seams.params import assemble

ROOT = Path(__file__).parents[2]
__all__ = ["FILE", "asked_of", "dense_folder", "dequantized"]


def dequantized(model: Model) -> Model:
    """The dense float32 model that a packed one stands for."""
    recipe = choose_recipe("float32")

    def dense(path, spec):
        found = array_at(model, path)
        return jax.device_put(np.ascontiguousarray(found.T if spec.transposed else found), model.device)

    specs = walk(abstract(model.config, "float32", recipe.layout))
    params = assemble((path, dense(path, spec)) for path, spec in specs)
    return replace(model, params=params, recipe=recipe, name="dequantized", read_from=None)


def asked_of(reference: str, where: Path, asked: object, script: str | None = None):
    """Return the answers of a reference library, in an environment of its own. None: there is no such environment."""
    python = ENVIRONMENTS / reference / "bin" / "python"
    if not python.exists():
        return None
    script = ROOT / "tests" / "real" / f"reference_{script or reference}.py"
    done = subprocess.run([python, script, where], input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
