"""Writes ``<model>.npz`` for each model that sees: what transformers makes of pictures, and says to them.

    python tests/goldens/make_media.py [--only NAME]

Needs an environment with torch, transformers 5 and Pillow. ``tests/parity/media_models.py`` makes weights, pictures and
prompts, so that none are stored. Each file holds

    pixels_<number>                  what the processor makes of some pictures of seed 0, as bytes
    soft_<seed>_<number>             soft tokens [token, width]: of seed 0 for all pictures, of others the first
                                     of those that are shown
    heard_<seed>_<number>            the soft tokens of sounds, of models that hear
    tokens_<seed>                    a prompt with two pictures, and what greedy decoding adds
    logits_<seed>                    of some seeds, the scores before each of those [token, vocabulary]
    tensors, config                  the stored names and shapes as JSON, and the config.json that transformers wrote
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.goldens.reference_media import made_up_model, sound_features
from tests.parity.media_models import (
    BEGIN,
    FEW,
    MODELS,
    NEW_TOKENS,
    PICTURE,
    PIXELS_OF,
    SCORED,
    SECONDS,
    SEEDS,
    SIZES,
    media_tensor,
    picture,
    prompt,
    shown,
    sound,
)


def gemma3_pictures(name: str) -> Callable[[np.ndarray], dict[str, torch.Tensor]]:
    """Return the input that a Gemma 3 gets of a picture."""
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

    processor = Gemma3ImageProcessorPil(**MODELS[name].processor)
    return lambda pixels: {"pixel_values": processor(images=pixels, return_tensors="pt")["pixel_values"]}


def gemma4_pictures(name: str) -> Callable[[np.ndarray], dict[str, torch.Tensor]]:
    """Return the input that a Gemma 4 gets of a picture."""
    from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil

    processor = Gemma4ImageProcessorPil(**MODELS[name].processor)

    def prepare(pixels: np.ndarray) -> dict[str, torch.Tensor]:
        found = processor(images=pixels, return_tensors="pt")
        return {key: found[key] for key in ("pixel_values", "image_position_ids")}

    return prepare


def merged_pictures(name: str) -> Callable[[np.ndarray], dict[str, torch.Tensor]]:
    """Return the input that a Gemma 4 without a tower gets of a picture: patches of a soft token each.

    transformers' own processor of it needs torchvision, so its patches are put together here.
    """
    processor = MODELS[name].processor
    patch, pool, budget = (int(str(processor[key])) for key in ("patch_size", "pooling_kernel_size", "max_soft_tokens"))
    small = gemma4_pictures(name)

    def prepare(pixels: np.ndarray) -> dict[str, torch.Tensor]:
        found = small(pixels)
        places = found["image_position_ids"][0].numpy()
        real = places[:, 0] >= 0
        columns, rows = places[real].max(axis=0) + 1
        image = found["pixel_values"][0].numpy()[real].reshape(rows, columns, patch, patch, 3).swapaxes(1, 2)
        side = patch * pool
        image = image.reshape(rows // pool, side, columns // pool, side, 3).swapaxes(1, 2).reshape(-1, side * side * 3)
        at = np.arange(len(image))
        values, where = np.zeros((budget, side * side * 3), np.float32), np.full((budget, 2), -1)
        values[: len(image)] = image
        where[: len(image)] = np.stack([at % (columns // pool), at // (columns // pool)], axis=1)
        return {"pixel_values": torch.from_numpy(values)[None], "image_position_ids": torch.from_numpy(where)[None]}

    return prepare


READERS: Mapping[str, Callable[[str], Callable[[np.ndarray], dict[str, torch.Tensor]]]] = {
    "gemma3": gemma3_pictures,
    "gemma4": gemma4_pictures,
    "gemma4_unified": merged_pictures,
}


@torch.no_grad()
def heard(model: transformers.PreTrainedModel, samples: np.ndarray) -> np.ndarray:
    """The soft tokens of a sound [token, width]."""
    found = model.model.get_audio_features(**sound_features(model, samples), return_dict=True)
    return found.pooler_output[found.attention_mask.bool()].numpy()


def levels(name: str, values: np.ndarray) -> np.ndarray:
    """Pixels as the bytes that they were before they were scaled."""
    middle = 0.5 if name.startswith("gemma-3") else 0.0
    found = (values * (1 - middle) + middle) * 255
    if np.abs(found - np.round(found)).max() > 1e-3:
        raise ValueError("expected values that were bytes, found others")
    return np.round(found).astype(np.uint8)


def real_tokens(found: torch.Tensor | tuple[torch.Tensor], given: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The soft tokens of one picture without padding, ``[token, width]``."""
    found = found[0] if isinstance(found, tuple) else found
    found = found.reshape(-1, found.shape[-1])
    places = given.get("image_position_ids")
    return found if places is None or len(found) != places.shape[1] else found[(places[0] >= 0).all(-1)]


@torch.no_grad()
def write(name: str) -> None:
    """Write one file."""
    kept: dict[str, Any] = {}
    prepare = READERS[str(MODELS[name].config["model_type"])](name)
    for seed in range(SEEDS):
        weight = partial(media_tensor, model=name, seed=seed)
        model = made_up_model(MODELS[name].config, weight)
        soft = {}
        for number in shown(seed) if seed else range(len(SIZES)):
            given = prepare(picture(name, seed, number))
            if not seed and number in PIXELS_OF:
                kept[f"pixels_{number}"] = levels(name, given["pixel_values"].numpy()[0])
            found = model.model.get_image_features(**given, return_dict=True).pooler_output
            soft[number] = real_tokens(found, given)
            kept[f"soft_{seed}_{number}"] = soft[number].numpy()[: FEW if seed else None]
        both = shown(seed)
        tokens = prompt(name, seed, tuple(len(soft[number]) for number in both))
        given = [prepare(picture(name, seed, number)) for number in both]
        given = {key: torch.cat([one[key] for one in given]) for key in given[0]}
        scores = []
        for _ in range(NEW_TOKENS):
            ids = torch.tensor([tokens])
            kinds = (ids == PICTURE).long()
            extra = (
                {"token_type_ids": kinds}
                if MODELS[name].config["model_type"] == "gemma3"
                else {"mm_token_type_ids": kinds}
            )
            if MODELS[name].config["model_type"] == "gemma4_unified":
                # Asked directly, this one sees all of a picture in global layers too; generate() has them causal.
                nothing = torch.zeros(1, len(tokens), 1)
                extra["attention_mask"] = model.create_masks_for_generate(
                    model.config, nothing, None, None, torch.arange(len(tokens))[None], **extra
                )
            scores.append(model(input_ids=ids, use_cache=False, **given, **extra).logits[0, -1])
            tokens.append(int(scores[-1][:BEGIN].argmax()))  # a model with made-up weights may well say "picture"
        kept[f"tokens_{seed}"] = np.array(tokens, np.int32)
        if seed < SCORED and MODELS[name].config.get("audio_config"):
            for number in range(len(SECONDS)):
                kept[f"heard_{seed}_{number}"] = heard(model, sound(name, seed, number))
        if seed < SCORED:
            kept[f"logits_{seed}"] = torch.stack(scores).numpy()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        written = Path(folder, "config.json").read_text()
        content = Path(folder, "model.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    np.savez_compressed(
        Path(__file__).with_name(f"{name}.npz"),
        **kept,
        tensors=json.dumps({key: header[key]["shape"] for key in sorted(header) if key != "__metadata__"}),
        config=written,
        made_by=f"transformers {transformers.__version__}, torch {torch.__version__}",
    )


def main() -> None:
    """Write them all, or one."""
    parser = argparse.ArgumentParser(description="Write what transformers makes of pictures.")
    parser.add_argument("--only", choices=[*MODELS], help="one model")
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in [options.only] if options.only else MODELS:
        write(name)


if __name__ == "__main__":
    main()
