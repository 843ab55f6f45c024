"""The results of transformers for a folder: greedy tokens after prompts, by how much each was preferred, a page's loss.

    .envs/hf/bin/python tests/real/reference_hf.py FOLDER < asked.json > found.json

``asked`` has prompts as ids, how many tokens to add, and a page as ids.
"""

from __future__ import annotations

import json
import sys

import torch
import transformers


@torch.inference_mode()
def main() -> None:
    """Answer."""
    asked = json.load(sys.stdin)
    model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
    answers = []
    for prompt in asked["prompts"]:
        cache, ids = transformers.DynamicCache(config=model.config), torch.tensor([prompt])
        tokens, margins = [], []
        for _ in range(asked["count"]):
            scores = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[0, -1]
            best, second = scores.topk(2).values.tolist()
            tokens.append(int(scores.argmax()))
            margins.append(best - second)
            ids = torch.tensor([tokens[-1:]])
        answers.append({"tokens": tokens, "margins": margins})
    page = torch.tensor([asked["page"]])
    scores = model(page, use_cache=False).logits[0, :-1].double()
    loss = torch.nn.functional.cross_entropy(scores, page[0, 1:]).item()
    json.dump({"answers": answers, "loss": loss, "version": transformers.__version__}, sys.stdout)


if __name__ == "__main__":
    main()
