"""Shrunk models that hear, with a vocabulary in which one can talk to them, and what is said to them.

Numpy and the library of vocabularies alone: this file is read in environments that have no JAX, and in one that has no
torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import decoders, models, normalizers

from tests.parity.media_models import MODELS, media_tensor, sound

NAMES = ("gemma-4-e4b-vision", "gemma-4-12b-unified")
VOCABULARY, NEW_TOKENS = 400, 12
ASKED, ENDED = "What do you hear?", "Say it."
BEFORE, AFTER = f"<bos><|turn>user\n{ASKED}", f"{ENDED}<turn|>\n<|turn>model\n"
NO_THOUGHT = {"gemma-4-12b-unified": "<|channel>thought\n<channel|>"}  # how the answers of this size begin
SPECIAL = (
    *("<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|think|>", "<|tool>"),
    *("<tool|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>', "<|image>"),
    *("<|image|>", "<image|>", "<|audio>", "<|audio|>", "<audio|>", "<|video|>"),
)
_LETTERS = [chr(code) for code in (*range(65, 91), *range(97, 123))]


def vocabulary() -> dict[str, Any]:
    """A ``tokenizer.json`` with Gemma 4's control tokens, letters and bytes."""
    names = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *_LETTERS]
    model = models.BPE({name: at for at, name in enumerate(names)}, [], byte_fallback=True, unk_token="<unk>")
    library = tokenizers.Tokenizer(model)
    library.normalizer = normalizers.Replace(" ", "\u2581")
    library.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    library.add_special_tokens(list(SPECIAL))
    found: dict[str, Any] = json.loads(library.to_str())
    return found


def id_of(token: str) -> int:
    """Return the id of a token."""
    found = vocabulary()["model"]["vocab"][token]
    return int(found)


def config_of(name: str) -> dict[str, Any]:
    """Return a model's configuration with this vocabulary."""
    raw: dict[str, Any] = dict(MODELS[name].config)
    names = {
        "boi_token_id": "<|image>",
        "image_token_id": "<|image|>",
        "eoi_token_id": "<image|>",
        "boa_token_id": "<|audio>",
        "audio_token_id": "<|audio|>",
        "eoa_token_index": "<audio|>",
        "video_token_id": "<|video|>",
    }
    text = {**raw["text_config"], "vocab_size": VOCABULARY, "vocab_size_per_layer_input": VOCABULARY}
    ends = [id_of("<eos>"), id_of("<turn|>")]
    return {**raw, **{key: id_of(token) for key, token in names.items()}, "text_config": text, "eos_token_id": ends}


def weight(key: str, shape: tuple[int, ...], name: str) -> npt.NDArray[np.float32]:
    """Return a weight by its stored name. Letters alone are likely enough to be said."""
    found = media_tensor(key, shape, name, 0)
    if key.endswith("embed_tokens.weight"):
        first = id_of(_LETTERS[0])
        quiet = [at for at in range(shape[0]) if not first <= at < first + len(_LETTERS)]
        found = found.copy()
        found[quiet] *= np.float32(0.02)
    return found


def grown(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a model's weights with this vocabulary."""
    return {key: (VOCABULARY, *shape[1:]) if "embed_tokens" in key else shape for key, shape in shapes.items()}


def played(name: str) -> npt.NDArray[np.int16]:
    """Return the samples of a sound as a file has them: 16,000 a second."""
    return np.round(sound(name, 0, 1) * 32767 * 0.5).astype(np.int16)
