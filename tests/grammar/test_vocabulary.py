"""A tokenizer as llguidance knows it: control tokens by their ids, and tokens without bytes are no empty text."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.grammar.vocabulary import Lexicon, _Wrapped
from tests.dialects.vocabulary import tokenizer


def test_control_tokens_are_named_or_refused():
    lexicon = Lexicon(tokenizer(), tokenizer().vocab_size)
    assert lexicon.control_ids(["<|tool_call>"]) == [tokenizer().control_id("<|tool_call>")]
    with pytest.raises(UnsupportedModelError, match="needs the control token '<nope>'"):
        lexicon.control_ids(["<|tool_call>", "<nope>"])
    assert lexicon.end == tokenizer().eos_ids[0]


@pytest.mark.parametrize(("size", "words"), [(31, 1), (32, 1), (33, 2)])
def test_a_mask_has_a_bit_for_each_row_of_the_embedding(size, words):
    assert Lexicon(tokenizer(), size).words == words


def test_it_is_made_once():
    lexicon = Lexicon(tokenizer(), tokenizer().vocab_size)
    assert lexicon.matching() is lexicon.matching()


def test_tokens_without_bytes_have_names_and_those_beyond_the_model_are_left_out():
    known = SimpleNamespace(
        eos_ids=(1,), control_tokens={"<eos>": 1, "<far>": 9}, token_bytes=[b"a", b"", b"", b"b"].__getitem__
    )
    wrapped = _Wrapped(known, 4)
    assert (wrapped.tokens, wrapped.special_token_ids) == ([b"a", b"<eos>", b"<[2]>", b"b"], [1, 2])
    with pytest.raises(TypeError):
        wrapped(b"bytes")
