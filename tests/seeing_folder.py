"""A tiny model that sees, as a checkpoint of transformers: made-up weights by the names in a golden file."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from tests.parity.media_models import MODELS, media_tensor
from tests.tiny_gemma import tiny_gemma

GOLDENS = Path(__file__).with_name("goldens")


@cache
def golden(name: str) -> dict[str, np.ndarray]:
    """Return the numbers that ``goldens/make_media.py`` wrote of a model."""
    with np.load(GOLDENS / f"{name}.npz") as found:
        return {key: found[key] for key in found.files}


def write_seeing(folder: Path, name: str, seed: int = 0) -> None:
    """Write one of ``MODELS`` with the weights of a seed."""
    folder.mkdir(exist_ok=True)
    files = tiny_gemma()
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (folder / file).write_bytes(files[file])
    (folder / "config.json").write_text(json.dumps(MODELS[name].config))
    (folder / "preprocessor_config.json").write_text(json.dumps(MODELS[name].processor))
    shapes = {key: tuple(shape) for key, shape in json.loads(str(golden(name)["tensors"])).items()}
    stored = {key: media_tensor(key, shape, name, seed) for key, shape in shapes.items()}
    save_file(stored, folder / "model.safetensors")
