from __future__ import annotations

import json

import pytest

from benchmarks.work.replay import ANSWER, CONTEXT, pieces
from benchmarks.work.vocabulary import BOS, encode, write_tokenizer
from benchmarks.work.workload import VOCABULARY
from langchain_gemma_jax.models.tokenizer import load_tokenizer


def test_json_is_split_about_as_gemma_splits_it():
    assert pieces('{"sku": "A-42", "n": 1}') == [
        *('{"', "sku", '":', ' "', "A", "-", "4", "2", '",', ' "', "n", '":', " ", "1", "}")
    ]


def test_nothing_is_lost_between_tokens():
    for text in (CONTEXT, ANSWER, "Zürich\n\t- x_1  y"):
        assert "".join(pieces(text)) == text


def test_the_answer_is_a_call_that_brings_words_of_its_own():
    call = json.loads(ANSWER)
    assert call["name"] in CONTEXT
    assert call["arguments"]["order_id"] in CONTEXT
    own = set(pieces(ANSWER)) - set(pieces(CONTEXT))
    assert " arrived" in own, "or every token could be drafted"


@pytest.mark.long
def test_the_tokenizer_reads_back_what_is_encoded(tmp_path):
    write_tokenizer(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.vocab_size == VOCABULARY
    assert tokenizer.bos_id == BOS
    assert tokenizer.decode(encode(ANSWER)) == ANSWER
    assert tokenizer.decode(encode(CONTEXT)) == CONTEXT
    assert len(tokenizer.decode([200_000])) > 1, "any other token is some text too"
