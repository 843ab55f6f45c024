"""Grammars as llguidance reads them: a schema's words never become a part of the grammar."""

from __future__ import annotations

import json
import random
import re

import pytest

from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.grammar.pattern_text import parse
from langchain_gemma_jax.grammar.reading import Reading
from langchain_gemma_jax.grammar.terminals import words
from tests.dialects.vocabulary import tokenizer
from tests.dialects.walks import constraints


def fits(text):
    """Return a function that says if texts fit a pattern."""
    return Reading(words([parse(text)])).fits


@pytest.mark.parametrize(
    "text",
    ["(?:a|b|(?:c)){30}", "^[\\d-]+$", "a/b", "^[/]$", "^[^/]+$", "^[&~a^&b]$", "^#$", "^ $", "^[|(){}+*?.^$]$", "^~$"],
)
def test_marks_that_mean_something_to_llguidance_mean_themselves(text):
    reads, rng = fits(text), random.Random(text)
    for _ in range(300):
        said = "".join(rng.choice("ab-/&~# |(){}+*?.^$1c") for _ in range(rng.choice([1, 1, 2, 30])))
        assert reads(said) == bool(re.search(text, said)), said


def test_what_a_schema_says_never_becomes_grammar():
    """Names and constants are quoted, whatever is in them."""
    for text in ('"', "\\", "\n", "\\u0022", "<[1]>", "<|tool_call>", "/", "%json", "\u2028", "\x7f", "{}", "#", "//"):
        for schema in ({"const": text}, {"const": {text: 1}}, {"enum": [text + "a", "b"]}):
            rule = constraints().of(json_grammar(schema), frozenset(), forces=False)
            assert rule is not None
            for token in tokenizer().encode_text(json.dumps(schema.get("const", "b"), ensure_ascii=False)):
                assert rule.take(token), (text, schema)
            assert rule.finished
