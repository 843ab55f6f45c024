"""Writes ``drafters.json``: what transformers' assisted generation drafts and accepts, with tiny random models.

    python tests/goldens/make_drafters.py

Needs an environment with torch and transformers 5.24. Weights are not stored: ``tests/parity/made_up.py`` makes the
same ones from the same names. For each kind of drafter and each prompt the file holds the tokens of the answer, and
what was drafted in each round.

Two things of transformers' generator are put right here, as other runners have them. After a rejection it lets the
drafter see the key of a rejected token, at the position of the token that took its place; only what was accepted is
seen here. And in local layers it sees one key more than the window has, while the target's last token saw just these.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import torch
import transformers
from transformers.generation import candidate_generator

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.parity.drafters import DRAFTERS, GUESSES, NEW_TOKENS, TARGETS, VOCABULARY, prompt
from tests.parity.made_up import tensor

PROMPTS = 4
ORDER = "masked_embedding.token_ordering"

KINDS = {
    "gemma4_text": transformers.Gemma4ForCausalLM,
    "gemma4_unified_text": transformers.Gemma4UnifiedForCausalLM,
    "gemma4_assistant": transformers.Gemma4AssistantForCausalLM,
    "gemma4_unified_assistant": transformers.Gemma4UnifiedAssistantForCausalLM,
}


def make(name: str, raw: Any, kind: Any) -> Any:
    """A model with made-up weights, in float32 with attention written out."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(raw))
        config = transformers.AutoConfig.from_pretrained(folder)
    config._attn_implementation = "eager"
    model = kind(config).float().eval()
    tied = set(model.all_tied_weights_keys)
    for key, value in model.state_dict().items():
        if key == ORDER:
            value.copy_(torch.arange(VOCABULARY).reshape(-1, 4).T.reshape(-1))
        elif key not in tied:
            value.copy_(torch.from_numpy(tensor(key, tuple(value.shape), name, 0, norm_offset=0.0)))
    return model


class Watched(candidate_generator.SinglePositionMultiTokenCandidateGenerator):
    """The generator, with its rounds written down."""

    rounds: ClassVar[list[list[int]]] = []

    def get_candidates(self, input_ids: Any, model_kwargs: Any, model_outputs: Any, **more: Any) -> Any:
        if model_outputs is not None:
            left = len(self.rounds[-1]) - more["n_last_matches"] if self.rounds else 0
            model_outputs.shared_kv_states = {
                kind: tuple(each[:, :, : each.shape[2] - left] for each in kv)
                for kind, kv in model_outputs.shared_kv_states.items()
            }
        found = super().get_candidates(input_ids, model_kwargs, model_outputs, **more)
        if model_outputs is not None:
            self.rounds.append(found[0][0, input_ids.shape[1] :].tolist())
        return found


@torch.no_grad()
def answers(name: str) -> list[dict[str, Any]]:
    """The answer to each prompt."""
    target = make(name, TARGETS[name], KINDS[TARGETS[name]["model_type"]])
    drafter = make(f"{name} drafter", DRAFTERS[name], KINDS[DRAFTERS[name]["model_type"]])
    drafter.config.get_text_config().sliding_window -= 1
    drafter.generation_config.num_assistant_tokens = GUESSES
    target.generation_config.eos_token_id = None
    found = []
    for seed in range(PROMPTS):
        ids = torch.tensor([prompt(seed)])
        how = {"max_new_tokens": NEW_TOKENS, "do_sample": False, "pad_token_id": 0}
        plain = target.generate(ids, **how)[0, ids.shape[1] :].tolist()
        Watched.rounds = []
        said = target.generate(ids, assistant_model=drafter, **how)[0, ids.shape[1] :].tolist()
        assert said == plain, "drafts change no answer"
        found.append({"prompt": ids[0].tolist(), "answer": said, "drafts": Watched.rounds})
    return found


def main() -> None:
    """Write the file."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    import transformers.generation.utils as where

    where.SinglePositionMultiTokenCandidateGenerator = Watched
    made_by = {"transformers": transformers.__version__, "torch": torch.__version__}
    everything = {"made_by": made_by, "answers": {name: answers(name) for name in TARGETS}}
    path = Path(__file__).with_name("drafters.json")
    path.write_text(json.dumps(everything, separators=(",", ":")) + "\n")
    print(path)  # noqa: T201


if __name__ == "__main__":
    main()
