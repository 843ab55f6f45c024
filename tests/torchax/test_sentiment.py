"""The mood of a text by a prompt: a decision model's probabilities are those of torch's scores."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.chat.asking.questions import asked_question
from tests.own_engine import own_engine
from tests.torchax.torch_models import TEMPLATE, needs_torch, save_model, scores

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]

decisions = pytest.importorskip("langchain_core.decisions", reason="this langchain-core has no decision models")
REVIEWS = ("I have seen it three times.", "I left after ten minutes.", "The weather in Paris is good.")


def test_probabilities_are_those_of_torchs_scores(tmp_path):
    from transformers import PreTrainedTokenizerFast

    from langchain_gemma_jax.decisions import GemmaDecisionModel

    module = save_model(tmp_path, "llama 3")
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    theirs.chat_template = TEMPLATE.read_text()
    mood = decisions.Choice(instructions="What does the writer feel?", criteria={"good": None, "bad": "sad"})
    asked = [{"state": review, "questions": {"mood": mood}} for review in REVIEWS]
    with own_engine():
        found = [each.choices["mood"] for each in GemmaDecisionModel(model=f"torchax:{tmp_path}").batch(asked)]
    for review, one in zip(REVIEWS, found, strict=True):
        question = asked_question("mood", review, mood)
        chat = [{"role": "user", "content": question.text}]
        ids = theirs.apply_chat_template(chat, add_generation_prompt=True, tokenize=True, return_dict=False)
        labels = [theirs.encode(label, add_special_tokens=False)[0] for label in question.labels]
        shares = np.exp(scores(module, ids)[-1, labels].astype(np.float64))
        shares /= shares.sum()
        assert [one.probabilities["good"], one.probabilities["bad"]] == pytest.approx(list(shares), abs=1e-4)
        assert one.choice == ("good", "bad")[int(shares.argmax())]
