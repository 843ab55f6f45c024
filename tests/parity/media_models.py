"""Shrunk models that see or hear, with made-up weights, pictures and prompts: the same bits wherever they are made.

Plain values and numpy only: this file is read in environments that have no JAX, and in one that has no torch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt

from tests.parity.architectures import SHRUNK, Raw
from tests.parity.made_up import tensor

BEGIN, PICTURE, END, SOUND = 150, 151, 152, 154
NEW_TOKENS, SEEDS = 32, 10
SIZES = (
    (42, 42), (21, 21), (84, 84), (300, 200), (200, 300), (12, 90), (40, 9), (5, 4), (96, 128), (640, 480),
    (33, 77), (270, 480),
)  # fmt: skip
"""Height and width of the pictures that every model is shown."""

PIXELS_OF = (1, 3, 5, 8)  # whose pixels are stored
FEW = 8  # soft tokens of a picture that are stored, but for those of seed 0
SCORED = 3  # seeds whose scores are stored, and to which sounds are played
SECONDS = (0.31, 1.1)


@dataclass(frozen=True)
class MediaModel:
    """A model, what its processor's file says, and how much its norms' factors are more than what is stored."""

    config: Raw
    processor: Raw
    norm_offset: float


_GEMMA4_IDS = {
    "boi_token_id": BEGIN,
    "image_token_id": PICTURE,
    "eoi_token_id": END,
    "boa_token_id": 153,
    "audio_token_id": SOUND,
    "eoa_token_index": 155,
    "video_token_id": 156,
}
_GEMMA4_PROCESSOR = {
    "image_processor_type": "Gemma4ImageProcessor",
    "patch_size": 4,
    "pooling_kernel_size": 3,
    "max_soft_tokens": 70,
    "resample": 3,
    "do_normalize": False,
    "rescale_factor": 1 / 255,
}
_GEMMA4_TOWER = {
    "model_type": "gemma4_vision",
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "patch_size": 4,
    "pooling_kernel_size": 3,
    "position_embedding_size": 256,
    "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0},
}

MODELS: Mapping[str, MediaModel] = {
    "gemma-3-4b-vision": MediaModel(
        {
            "model_type": "gemma3",
            "eos_token_id": [1, 106],
            "boi_token_index": BEGIN,
            "eoi_token_index": END,
            "image_token_index": PICTURE,
            "mm_tokens_per_image": 9,
            "text_config": SHRUNK["gemma-3-4b"],
            "vision_config": {
                "model_type": "siglip_vision_model",
                "hidden_size": 24,
                "intermediate_size": 40,
                "num_hidden_layers": 3,
                "num_attention_heads": 3,
                "image_size": 42,
                "patch_size": 7,
                "vision_use_head": False,
            },
        },
        {
            "image_processor_type": "Gemma3ImageProcessor",
            "size": {"height": 42, "width": 42},
            "resample": 2,
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
            "rescale_factor": 1 / 255,
        },
        1.0,
    ),
    "gemma-4-e4b-vision": MediaModel(
        {
            "model_type": "gemma4",
            "eos_token_id": [1, 106, 50],
            **_GEMMA4_IDS,
            "audio_config": {
                "model_type": "gemma4_audio",
                "hidden_size": 16,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "subsampling_conv_channels": [128, 4],
                "output_proj_dims": 20,
            },
            "text_config": SHRUNK["gemma-4-e4b"],
            "vision_config": {**_GEMMA4_TOWER, "use_clipped_linears": True},
        },
        _GEMMA4_PROCESSOR,
        0.0,
    ),
    "gemma-4-31b-vision": MediaModel(
        {
            "model_type": "gemma4",
            "eos_token_id": [1, 106, 50],
            **_GEMMA4_IDS,
            "audio_config": None,
            "text_config": {**SHRUNK["gemma-4-31b"], "use_bidirectional_attention": "vision"},
            "vision_config": {**_GEMMA4_TOWER, "standardize": True},
        },
        _GEMMA4_PROCESSOR,
        0.0,
    ),
    "gemma-4-12b-unified": MediaModel(
        {
            "model_type": "gemma4_unified",
            "eos_token_id": [1, 106, 50],
            **_GEMMA4_IDS,
            "audio_config": {"model_type": "gemma4_unified_audio", "audio_embed_dim": 64},
            "text_config": {**SHRUNK["gemma-4-12b"], "use_bidirectional_attention": "vision"},
            "vision_config": {
                "model_type": "gemma4_unified_vision",
                "patch_size": 4,
                "pooling_kernel_size": 3,
                "mm_embed_dim": 24,
                "mm_posemb_size": 80,
                "output_proj_dims": 24,
            },
        },
        _GEMMA4_PROCESSOR,
        0.0,
    ),
}


_SQUARE_PROCESSOR = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "rescale_factor": 1 / 255}


def _with_siglip(
    kind: str, text: str, changes: Raw, side: int, patch: int, resample: int, **more: object
) -> MediaModel:
    """A model around one of ``SHRUNK``, whose text tower has other sizes."""
    tower = {
        "model_type": "siglip_vision_model",
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "image_size": side,
        "patch_size": patch,
        "vision_use_head": False,
    }
    within = {**SHRUNK[text], **changes}
    config = {"model_type": kind, "text_config": within, "vision_config": tower, "image_token_index": PICTURE, **more}
    if kind == "paligemma":
        config["projection_dim"] = config["hidden_size"] = within["hidden_size"]
    processor = _SQUARE_PROCESSOR | {"size": {"height": side, "width": side}, "resample": resample}
    return MediaModel(config, processor, 1.0)


_WINDOWED = {"sliding_window": 11, "max_position_embeddings": 1024}
_SHIELD = {"boi_token_index": BEGIN, "eoi_token_index": END, "yes_token_index": 17, "no_token_index": 90}

FAMILY: Mapping[str, MediaModel] = {
    "paligemma-1": _with_siglip("paligemma", "gemma-2b", {"hidden_size": 44, "num_hidden_layers": 4}, 35, 7, 3),
    "paligemma-2": _with_siglip("paligemma", "gemma-2-2b", {**_WINDOWED, "intermediate_size": 20}, 42, 7, 3),
    "paligemma-2-odd": _with_siglip(
        *("paligemma", "gemma-2-27b"),
        {"hidden_size": 36, "num_hidden_layers": 5, "sliding_window": 3, "final_logit_softcapping": None},
        *(20, 6, 2),  # pixels at the edge that are in no patch
    ),
    "shieldgemma-2": _with_siglip("shieldgemma2", "gemma-3-4b", {}, 42, 7, 2, mm_tokens_per_image=4, **_SHIELD),
    "shieldgemma-2-odd": _with_siglip(
        *("shieldgemma2", "gemma-3-27b", {"hidden_size": 44, "num_hidden_layers": 7}, 35, 7, 2),
        **{"mm_tokens_per_image": 1, **_SHIELD},
    ),
    "shieldgemma-2-three": _with_siglip(
        *(
            "shieldgemma2",
            "gemma-3-4b",
            {"hidden_size": 36, "head_dim": 6, "sliding_window": 5, "num_attention_heads": 6},
            20,
            6,
            2,
        ),
        **{"mm_tokens_per_image": 9, **_SHIELD},
    ),
}
"""Other members of the family that see: PaliGemma 1 and 2, and ShieldGemma 2, each in odd sizes."""


def plain_name(name: str) -> str:
    """Return the name of a tensor without what some checkpoints put before or between."""
    name = re.sub(r"^(model\.)+", "", name).replace("vision_tower.vision_model.", "vision_tower.")
    name = re.sub(r"^embed_vision\.(patch_|pos_)", r"vision_embedder.\1", name)
    return name.replace("embed_vision.multimodal_embedder.", "embed_vision.")


def media_tensor(name: str, shape: tuple[int, ...], model: str, seed: int) -> npt.NDArray[np.float32]:
    """Return a weight by its stored name."""
    plain, kind = plain_name(name), {**MODELS, **FAMILY}[model]
    if not plain.startswith(("vision_", "audio_", "embed_vision", "embed_audio", "multi_modal_projector")):
        return tensor(name, shape, model, seed, norm_offset=kind.norm_offset)
    bits = np.random.PCG64([seed, crc32(f"{model}/{plain}".encode())]).random_raw(math.prod(shape)) >> np.uint64(40)
    uniform = (bits.astype(np.float32) * np.float32(2**-23) - np.float32(1)).reshape(shape)
    if len(shape) < 2:
        if not shape:  # limits of clipped products: some of what passes is beyond them
            return np.asarray(np.float32(1.5 if plain.endswith("max") else -1.5) + np.float32(0.2) * uniform)
        if plain.endswith("bias"):
            return np.float32(0.1) * uniform
        scale = np.float32(1 - kind.norm_offset if "mm_soft_emb_norm" in plain else 1)
        return scale + np.float32(0.3) * uniform
    fan = math.prod(shape[1:])
    return np.float32((3 / fan) ** 0.5) * uniform


def picture(model: str, seed: int, number: int) -> npt.NDArray[np.uint8]:
    """Return one of the pictures: ``SIZES[number]``, with areas and with noise."""
    height, width = SIZES[number]
    bits = np.random.PCG64([seed, number, crc32(model.encode())]).random_raw(height * width * 3) >> np.uint64(56)
    noise = bits.astype(np.int64).reshape(height, width, 3)
    rows, columns = np.arange(height)[:, None, None], np.arange(width)[None, :, None]
    areas = (rows * 7 + columns * 3 + np.arange(3) * 60) // 40 % 2 * 120
    return np.clip(areas + noise // 2, 0, 255).astype(np.uint8)


def sound(model: str, seed: int, number: int) -> npt.NDArray[np.float32]:
    """Return a sound of ``SECONDS[number]``: two tones that change, and noise."""
    count = int(SECONDS[number] * 16_000)
    bits = np.random.PCG64([seed, number, crc32(f"{model}/sound".encode())]).random_raw(count) >> np.uint64(40)
    noise = bits.astype(np.float64) * 2.0**-23 - 1
    at = np.arange(count) / 16_000
    tones = np.sin(2 * np.pi * (300 + 200 * seed) * at) + np.sin(2 * np.pi * 900 * at * at)
    return (0.3 * tones + 0.1 * noise).astype(np.float32)


def shown(seed: int) -> tuple[int, int]:
    """Return the numbers of the two pictures that are in a prompt."""
    return seed % len(SIZES), (seed + 5) % len(SIZES)


def family_prompt(model: str, soft: int) -> list[int]:
    """Return a prompt with one picture for one of ``FAMILY``. PaliGemma's is all read in both directions."""
    bits = np.random.PCG64([0, crc32(f"{model}/prompt".encode())]).random_raw(64) >> np.uint64(40)
    words = [3 + int(bit) % (BEGIN - 3) for bit in bits]
    if FAMILY[model].config["model_type"] == "paligemma":
        return [*[PICTURE] * soft, 2, *words[:13]]
    return [2, *words[:11], BEGIN, *[PICTURE] * soft, END, *words[11:30]]


def prompt(model: str, seed: int, tokens: tuple[int, int]) -> list[int]:
    """Return a prompt with two pictures in it, which have so many soft tokens."""
    bits = np.random.PCG64([seed, crc32(f"{model}/prompt".encode())]).random_raw(64) >> np.uint64(40)
    words = [3 + int(bit) % (BEGIN - 3) for bit in bits]
    first, second = ([BEGIN, *[PICTURE] * count, END] for count in tokens)
    return [2, *words[:11], *first, *words[11:16], *second, *words[16 : 20 + seed]]
