"""The state of a training run, in one file: parameters, the optimizer's state, the step, and the losses so far.

A safetensors file with the run's settings in its header. It is written beside the old one and takes its
place in one go, so that there is a whole one at any time.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import jax
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """How far a run is. The next batch to read is the one of number ``step``."""

    step: int
    settings: dict[str, Any]
    history: list[list[float]]  # tokens, loss and accuracy now and then


def save(path: Path, state: Any, progress: Progress) -> None:
    """Write the arrays of any tree, and the progress."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f"{index:05}": np.asarray(leaf, order="C") for index, leaf in enumerate(jax.tree.leaves(state))}
    told = json.dumps({"step": progress.step, "settings": progress.settings, "history": progress.history})
    temporary = path.with_suffix(".part")
    save_file(arrays, temporary, {"progress": told})
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)


def read_progress(path: Path) -> Progress:
    """The progress alone."""
    with safe_open(path, "np") as file:
        told = json.loads(file.metadata()["progress"])
    return Progress(told["step"], told["settings"], told["history"])


def load(path: Path, like: T) -> T:
    """The saved arrays in a tree such as ``like``.

    Raises:
        ValueError: the file is of another tree.
    """
    leaves, structure = jax.tree.flatten(like)
    with safe_open(path, "np") as file:
        names = sorted(file.keys())
        stored = [file.get_tensor(name) for name in names]
    found, expected = [each.shape for each in stored], [np.shape(leaf) for leaf in leaves]
    if found != expected:
        raise ValueError(f"{path}: expected the {len(expected)} arrays of this model and optimizer, found others.")
    arrays = [np.asarray(each, np.asarray(leaf).dtype) for each, leaf in zip(stored, leaves, strict=True)]
    return cast("T", jax.tree.unflatten(structure, arrays))
