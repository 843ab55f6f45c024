"""How likely each of a few words is."""

from __future__ import annotations

import math

import pytest

from langchain_gemma_jax import InputError, Sampling
from tests.chat.decision_models import STATE, Choice, ours


@pytest.fixture
def judge(chat_of):
    return ours.GemmaDecisionModel(model=chat_of().model)


def test_they_are_those_of_the_models_own_distribution(judge, running):
    served = running.load(judge.model)
    prompt = [served.model.tokenizer.bos_id, *served.model.tokenizer.encode_text(STATE)]
    told = running.submit(served, prompt, Sampling(max_tokens=1, logprobs=True, top_logprobs=20)).result()
    known = dict(told.logprobs[0].top)
    ids = tuple(reversed(known))  # the least likely first
    found = running.submit(served, prompt, Sampling(max_tokens=1, scored=ids)).result().logprobs[0]
    assert [token for token, _ in found.top] == list(ids)
    assert dict(found.top) == pytest.approx(known, abs=1e-3)
    assert found.id == told.logprobs[0].id, "what is asked changes nothing"
    assert ours.probabilities(list(known.values()), 1e5) == pytest.approx([1 / 20] * 20, abs=1e-3)
    for wrong, match in (((served.model.architecture.vocab_size,), "scored"), ((1,) * 21, "at most 20")):
        with pytest.raises(InputError, match=match):
            running.submit(served, prompt, Sampling(scored=wrong))
    with pytest.raises(InputError, match="together with logprobs"):
        Sampling(scored=(1,), logprobs=True)


def test_more_labels_than_are_reported_at_once(judge):
    many = Choice(instructions="WHICH?", criteria={f"label {number}": None for number in range(26)})
    found = judge.invoke({"state": STATE, "questions": {"one": many}}).choices["one"]
    assert len(found.probabilities) == 26
    assert math.isclose(sum(found.probabilities.values()), 1)
