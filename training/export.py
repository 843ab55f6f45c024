"""From a checkpoint of training to a folder in Hugging Face's layout.

python -m training.export runs/sprout-s exported/sprout-s
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import cast

import jax
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from langchain_gemma_jax.models.checkpoint.hf_names import HfNaming
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.seams.params import Params
from training.configs import EOS, HF_CONFIGS, model_config

_LIMIT = {"max_new_tokens": 1024}  # nothing that they learn to say is as long: they repeat themselves by then
_DTYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16), "float16": np.dtype(np.float16), "float32": np.dtype(np.float32)}


def export(params: Params, name: str, tokenizer: Path, folder: Path, dtype: str = "bfloat16") -> None:
    """Write everything that transformers and this package need to load the model called ``name``."""
    folder.mkdir(parents=True, exist_ok=True)
    config = model_config(name)
    naming = HfNaming("model.", "lm_head.weight")
    tensors: dict[str, np.ndarray] = {}
    for path, _ in walk(abstract(config)):
        array = np.asarray(_find(params, path), np.float32)
        if str(path[-1]).endswith("norm"):  # stored is what is added to one
            array = array - np.float32(config.norm_offset)
        row = 0
        for part in naming(config, path):
            rows = part.shape[0]
            piece = array[row : row + rows].reshape(part.shape)
            tensors[part.name] = np.ascontiguousarray(piece).astype(_DTYPES[dtype])
            row += rows
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    _write(folder / "config.json", HF_CONFIGS[name] | {"dtype": dtype})
    _write(
        folder / "generation_config.json",
        {"bos_token_id": 2, "pad_token_id": 0, "eos_token_id": list(EOS), "do_sample": False, **_LIMIT},
    )
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tokenizer / file, folder / file)


def _find(params: Params, path: tuple[str | int, ...]) -> jax.Array:
    match path:
        case ("layers", int(index), str(key)):
            return cast("list[dict[str, jax.Array]]", params["layers"])[index][key]
        case _:
            return cast("jax.Array", params[str(path[0])])


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def main() -> None:
    """Export the newest checkpoint of a run."""
    from training.train import kept

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dtype", choices=sorted(_DTYPES), default="bfloat16")
    arguments = parser.parse_args()
    params, settings = kept(arguments.run)
    export(params, settings.model, arguments.run / "tokenizer", arguments.folder, arguments.dtype)
    sys.stdout.write(f"{arguments.folder}: {(arguments.folder / 'model.safetensors').stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
