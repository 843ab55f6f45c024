"""Texts without turns, and what stands between two of them."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import ContextLengthError, GemmaJaxLLM, InputError
from langchain_gemma_jax.chat.calling.raw_text import FILL_IN, text_ids
from tests.dialects.vocabulary import tokenizer


@pytest.fixture
def llm(chat_of) -> GemmaJaxLLM:
    return GemmaJaxLLM(model=chat_of().model, max_tokens=8, temperature=0)


def test_the_text_is_read_as_it_is_and_settings_hold(scripted):
    _, engine = scripted("one two<eos>", "one two")
    llm = GemmaJaxLLM(model="x", stop=["two"], scope="tenant", token="hf_abc")
    assert llm.invoke("<|turn>user") == "one "
    (request,) = engine.submitted
    assert request["prompt"] == (tokenizer().bos_id, *tokenizer().encode_text("<|turn>user"))
    assert (request["scope"], engine.loaded[1]["token"]) == ("tenant", "hf_abc")
    assert request["sampling"].grammar is None
    assert llm.invoke("A", max_tokens=3, stop=["zzz"]) == "one"
    with pytest.raises(ContextLengthError):
        GemmaJaxLLM(model="x", max_context=5).invoke("A" * 50)


def test_what_is_between_two_texts_is_written_by_models_that_learned_it(scripted):
    class Coder:
        bos_id, begin = 2, (2,)

        def control_id(self, name):
            return 100 + FILL_IN.index(name)

        def encode_text(self, text):
            return [ord(mark) for mark in text]

    assert text_ids("a", "b", Coder(), "codegemma") == [2, 100, ord("a"), 101, ord("b"), 102]
    Coder.begin = ()  # GPT-2's file puts nothing before a text
    assert text_ids("a", None, Coder(), "gpt2") == [ord("a")]
    assert text_ids("", None, Coder(), "gpt2") == [2]
    scripted()
    with pytest.raises(InputError, match="cannot fill in between two texts"):
        GemmaJaxLLM(model="x", suffix="b").invoke("a")
