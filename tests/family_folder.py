"""Tiny models of ``FAMILY`` as checkpoints of transformers, and what they are asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from langchain_gemma_jax.engine.requests.prompt import MediaSpan, TokenSpan
from langchain_gemma_jax.media.medium import Picture
from tests.parity.media_models import FAMILY, NEW_TOKENS, PICTURE, media_tensor, picture
from tests.tiny_gemma import tiny_gemma

GOLDEN = Path(__file__).with_name("goldens") / "family.npz"
PALIGEMMAS = [name for name in FAMILY if name.startswith("paligemma")]


@cache
def golden(name):
    with np.load(GOLDEN) as found:
        return {key.partition("/")[2]: found[key] for key in found.files if key.startswith(f"{name}/")}


def write(folder, name):
    """Write a model of the family as transformers saves it, in the words of its published configuration."""
    files = tiny_gemma()
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (folder / file).write_bytes(files[file])
    (folder / "config.json").write_text(json.dumps(FAMILY[name].config))
    (folder / "preprocessor_config.json").write_text(json.dumps(FAMILY[name].processor))
    shapes = {key: tuple(shape) for key, shape in json.loads(str(golden(name)["tensors"])).items()}
    save_file({key: media_tensor(key, shape, name, 0) for key, shape in shapes.items()}, folder / "model.safetensors")


def spans(model, name, *, shown=9):
    """Return the prompt of a golden as the engine takes it. PaliGemma's words belong to its picture."""
    tokens = golden(name)["tokens"][:-NEW_TOKENS].tolist()
    placed = model.media.place(Picture(picture(name, 0, shown)))
    first = tokens.index(PICTURE)
    before, after = tokens[:first], tokens[first + len(placed.placeholders) :]
    words = after if name in PALIGEMMAS else []
    span = MediaSpan((*placed.placeholders, *words), placed.digest, placed.inputs, words=len(words))
    return [TokenSpan(before)] * bool(before) + [span] + [TokenSpan(after)] * (not words)


def add_tokens(folder: Path, markers: Sequence[str], **config: object) -> None:
    """Give a model that was written the vocabulary of its tokenizer, and in it these, from 287 on."""
    raw = json.loads((folder / "tokenizer.json").read_text())
    how = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    for number, marker in enumerate(markers):
        raw["added_tokens"].append({"id": 287 + number, "content": marker} | how)
        raw["model"]["vocab"][marker] = 287 + number
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    whole = json.loads((folder / "config.json").read_text()) | config
    whole["text_config"]["vocab_size"] = 320
    (folder / "config.json").write_text(json.dumps(whole))
    tensors, numbers = load_file(folder / "model.safetensors"), np.random.default_rng(3)
    for name, array in tensors.items():
        if name.endswith("embed_tokens.weight"):
            tensors[name] = numbers.normal(0, 0.3, (320, array.shape[1])).astype(np.float32)
    save_file(tensors, folder / "model.safetensors")
