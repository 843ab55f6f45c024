"""The grammar of a call: what is rendered is let through, and what cannot be written is refused."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.dialects import Tool, ToolCall, grammar_for
from langchain_gemma_jax.dialects.conversation.messages import Message
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.errors import InputError
from tests.dialects.calls_read import DIALECTS, calls, read
from tests.dialects.schemas import Schemas
from tests.dialects.vocabulary import tokenizer
from tests.dialects.walks import constraints, tokens_of, walk


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("seed", range(40))
def test_a_call_as_it_is_rendered_is_let_through(dialect, seed):
    """The model may write calls as the history has them: the same order, quotes and spaces."""
    rng = random.Random(seed)
    values = {"A": rng.randint(-9, 9), "b": Schemas(rng)._text(), "c:d": [1.5, None, True], "e": {"x": "y", "B": []}}
    arguments = {name: value for name, value in values.items() if rng.random() < 0.7}
    kinds = {"A": {"type": "integer"}, "b": {"type": "string"}, "c:d": {"type": "array"}, "e": {"type": "object"}}
    properties = {name: kinds[name] for name in values}
    tool = Tool("get", "", {"type": "object", "properties": properties})
    grammar = grammar_for([tool], "any", True, dialect)
    prompt = dialect.render([Message.user("Go"), Message.assistant(calls=[ToolCall("get", arguments)] * 2)])
    (place,) = prompt.written
    rule = constraints().of(grammar, frozenset(), forces=False)
    for piece in prompt.pieces[place.start : place.end]:
        tokens = [tokenizer().control_id(piece.text)] if piece.is_control else tokens_of(piece.text)
        assert all(map(rule.take, tokens)), piece
    assert rule.complete


@pytest.mark.parametrize("name", [" x", "x ", "a{b", "a\nb", "a}"])
def test_a_name_that_cannot_be_written_is_refused(name):
    with pytest.raises(InputError, match="tool's name"):
        grammar_for([Tool(name)], "auto", True, Gemma4Dialect())
    assert calls(
        read(GemmaDialect(), walk(grammar_for([Tool(name)], "any", False, GemmaDialect()), random.Random(1), 50))
    )
