"""Writes ``heard_talk.npz``: what models of transformers say to a question with a sound in it.

    python tests/goldens/make_heard_talk.py

Needs an environment with torch and transformers 5. ``tests/parity/heard_talk.py`` makes weights and vocabulary, and
says what is asked. Of each model there are

    prompt_<name>, answer_<name>     the ids that it reads and those that it says then, greedily
    margin_<name>                    by how much the best score is before the second one, at the least
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.goldens.reference_media import made_up_model, sound_features
from tests.parity.heard_talk import (
    AFTER,
    BEFORE,
    NAMES,
    NEW_TOKENS,
    NO_THOUGHT,
    config_of,
    id_of,
    played,
    vocabulary,
    weight,
)


@torch.no_grad()
def write(name: str, kept: dict[str, object]) -> None:
    """Add what one model says."""
    model = made_up_model(config_of(name), lambda key, shape: weight(key, shape, name))
    given = sound_features(model, played(name).astype(np.float32) / np.float32(32768))
    found = model.model.get_audio_features(**given, return_dict=True)
    soft = int(found.attention_mask.sum())
    library = tokenizers.Tokenizer.from_str(json.dumps(vocabulary()))
    ids = library.encode(BEFORE, add_special_tokens=False).ids
    ids += [id_of("<|audio>"), *[id_of("<|audio|>")] * soft, id_of("<audio|>")]
    ids += library.encode(AFTER + NO_THOUGHT.get(name, ""), add_special_tokens=False).ids
    kept[f"prompt_{name}"] = np.array(ids, np.int32)
    margins = []
    for _ in range(NEW_TOKENS):
        tokens = torch.tensor([ids])
        extra = {"mm_token_type_ids": torch.where(tokens == id_of("<|audio|>"), 3, 0)}
        scores = model(input_ids=tokens, use_cache=False, **given, **extra).logits[0, -1]
        best = torch.topk(scores, 2).values
        margins.append(float(best[0] - best[1]))
        ids.append(int(scores.argmax()))
    kept[f"answer_{name}"] = np.array(ids[-NEW_TOKENS:], np.int32)
    kept[f"margin_{name}"] = min(margins)


def main() -> None:
    """Write the file."""
    torch.set_num_threads(1)
    kept: dict[str, object] = {}
    for name in NAMES:
        write(name, kept)
    made_by = f"transformers {transformers.__version__}, torch {torch.__version__}"
    np.savez_compressed(Path(__file__).with_name("heard_talk.npz"), **kept, made_by=made_by)


if __name__ == "__main__":
    main()
