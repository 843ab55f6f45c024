"""Made-up models of transformers that see and hear, and sounds for them: what the scripts beside this file share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import torch
import transformers

from tests.parity.reference_hf import read_config


def made_up_model(
    raw: Mapping[str, object],
    weight: Callable[[str, tuple[int, ...]], npt.NDArray[np.float32]],
    kind: type[transformers.PreTrainedModel] | None = None,
) -> transformers.PreTrainedModel:
    """A model with made-up weights, in float32 with attention written out. ``kind``: its class, if it is no writer."""
    make = transformers.AutoModelForImageTextToText.from_config if kind is None else kind._from_config
    model = make(read_config(raw), attn_implementation="eager", dtype=torch.float32).eval()
    tied = set(model.all_tied_weights_keys)
    for key, value in model.state_dict().items():
        if key not in tied:
            value.copy_(torch.from_numpy(weight(key, tuple(value.shape))))
    return model


def sound_features(model: transformers.PreTrainedModel, samples: np.ndarray) -> dict[str, torch.Tensor]:
    """The arrays that a reference model is given for a sound."""
    if model.config.model_type == "gemma4_unified":
        frame = model.config.audio_config.audio_embed_dim
        features = np.pad(samples, (0, -len(samples) % frame)).reshape(1, -1, frame)
        mask = np.ones(features.shape[:2], bool)
    else:
        from transformers.models.gemma4.feature_extraction_gemma4 import Gemma4AudioFeatureExtractor

        found = Gemma4AudioFeatureExtractor()([samples])
        features, mask = np.array(found["input_features"]), np.array(found["input_features_mask"])
    return {
        "input_features": torch.from_numpy(features.astype(np.float32)),
        "input_features_mask": torch.from_numpy(mask),
    }
