"""Writes ``family.npz``: what transformers says to a picture, for PaliGemma 1 and 2 and ShieldGemma 2.

    python tests/goldens/make_family.py

Needs an environment with torch, transformers 5 and Pillow. ``tests/parity/media_models.py`` makes weights, pictures and
prompts, so that none are stored. For each model the file holds

    <name>/tokens            a prompt with a picture, and what greedy decoding adds
    <name>/logits            the scores before each of those [token, vocabulary]
    <name>/shares            of ShieldGemma 2: the probabilities of yes and no behind the prompt
    <name>/tensors, config   the stored names and shapes as JSON, and the config.json that transformers wrote
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.goldens.reference_media import made_up_model
from tests.parity.media_models import BEGIN, FAMILY, NEW_TOKENS, PICTURE, family_prompt, media_tensor, picture


def pixels(name: str) -> torch.Tensor:
    """Return the processor's arrays for a picture."""
    if FAMILY[name].config["model_type"] == "paligemma":
        from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil as Processor
    else:
        from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil as Processor
    found = Processor(**FAMILY[name].processor)(images=picture(name, 0, 9), return_tensors="pt")
    return found["pixel_values"]


@torch.no_grad()
def of_model(name: str) -> dict[str, object]:
    """The arrays of one model."""
    raw, weight = FAMILY[name].config, partial(media_tensor, model=name, seed=0)
    is_shield = raw["model_type"] == "shieldgemma2"
    kind = transformers.ShieldGemma2ForImageClassification if is_shield else None
    model = made_up_model(raw, weight, kind)
    answering = model.model if is_shield else model
    given = pixels(name)
    soft = answering.model.get_image_features(given, return_dict=True).pooler_output
    tokens = family_prompt(name, soft.reshape(-1, soft.shape[-1]).shape[0])
    prompt, scores, kept = len(tokens), [], {}
    if is_shield:
        ids = torch.tensor([tokens])
        found = model(input_ids=ids, pixel_values=given, token_type_ids=(ids == PICTURE).long())
        kept["shares"] = found.probabilities[0].numpy()
    for _ in range(NEW_TOKENS):
        ids = torch.tensor([tokens])
        # PaliGemma's kinds: 0 for what is read in both directions, 1 for the answer.
        kinds = (ids == PICTURE).long() if is_shield else (torch.arange(len(tokens)) >= prompt).long()[None]
        scores.append(answering(input_ids=ids, pixel_values=given, token_type_ids=kinds, use_cache=False).logits[0, -1])
        tokens.append(int(scores[-1][:BEGIN].argmax()))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        written = Path(folder, "config.json").read_text()
        content = Path(folder, "model.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return {
        **kept,
        "tokens": np.array(tokens, np.int32),
        "logits": torch.stack(scores).numpy(),
        "tensors": json.dumps({key: header[key]["shape"] for key in sorted(header) if key != "__metadata__"}),
        "config": written,
    }


def main() -> None:
    """Write the file."""
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    kept = {f"{name}/{key}": value for name in FAMILY for key, value in of_model(name).items()}
    made_by = f"transformers {transformers.__version__}, torch {torch.__version__}"
    np.savez_compressed(Path(__file__).with_name("family.npz"), **kept, made_by=made_by)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
