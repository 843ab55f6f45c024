"""Models whose weights are mapped, for tests."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.open_model import open_source
from langchain_gemma_jax.models.loading.plan_model import Devices, plan_model
from langchain_gemma_jax.models.loading.read import read
from langchain_gemma_jax.models.seams.params import leaves


def model_of(path, files, **how):
    asked = HowToLoad(**how)
    with open_source(path, asked, progress=False) as opened:
        return read(opened, plan_model(opened, asked, Devices()), progress=False, weight_files=files)


def arrays(model):
    """Copies: of a mapped model ``np.asarray`` would show the file."""
    return [np.array(array) for array in leaves(model.params)]


def same(one, other):
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(one, other, strict=True)
    )


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def maps():
    """The lines of this process's mappings."""
    return Path("/proc/self/maps").read_text("utf-8").splitlines()


def until_kept(files, count=1):
    while files.counts.written < count or any(name.endswith(".claim") for name in names_in(files.path)):
        time.sleep(0.002)
