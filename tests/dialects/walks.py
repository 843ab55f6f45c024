"""Random walks through grammars: a model without any sense, that is held to them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import jsonschema
import numpy as np

from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.engine.requests.model_grammars import ModelGrammars
from langchain_gemma_jax.engine.requests.request_constraint import RequestConstraint
from langchain_gemma_jax.grammar.nodes import Grammar
from tests.dialects.vocabulary import tokenizer


@cache
def constraints() -> ModelGrammars:
    """One for all tests."""
    return ModelGrammars(tokenizer(), tokenizer().vocab_size)


def walk(grammar: Grammar, rng: random.Random, most: int, *, hurry: float = 0.1) -> list[int]:
    """A text that ends by itself, or soon behind ``most`` tokens.

    Steps are drawn from what is allowed. ``hurry`` is how often it ends, or takes a control token, where it can.
    """
    known = tokenizer()
    stops = frozenset(known.eos_ids)
    rule = constraints().of(grammar, stops, forces=rng.random() < 0.5)
    assert rule is not None
    found: list[int] = []

    def go_on(*tokens: int) -> None:
        for token in tokens:
            assert rule.take(token)
            found.append(token)

    if not rule.active:
        go_on(known.control_id(grammar.opener))
    while not rule.finished and not (rule.complete and len(found) >= most):
        if forced := rule.forced():
            go_on(*forced)
        else:
            go_on(draw(rule, rng, hurry, ends=len(found) >= most))
        assert len(found) < most + 20_000, "there is no end"
        if found[-1] in stops:
            break
    return found


def allowed(rule: RequestConstraint) -> list[int]:
    """The tokens that can come next."""
    rule.illegal = True  # so that there is a mask
    rule.prepare()
    rule.illegal = False
    assert rule.allowed is not None
    found: list[int] = np.flatnonzero(np.unpackbits(rule.allowed.view(np.uint8), bitorder="little")).tolist()
    return found


def draw(rule: RequestConstraint, rng: random.Random, hurry: float, *, ends: bool) -> int:
    """Any of the tokens that can come. ``ends``: one that leads to the text's end sooner than others, if any does."""
    tokens = allowed(rule)
    controls = [token for token in tokens if tokenizer().control_name(token)]
    if controls and (ends or rng.random() < hurry):
        return rng.choice(controls)
    by_text = {tokenizer().token_bytes(token): token for token in tokens}
    if ends and rng.random() < 0.7 and (closing := [by_text[mark] for mark in (b'"', b"}", b"]") if mark in by_text]):
        return closing[0]
    return rng.choice([token for text, token in by_text.items() if not (ends and text in b"[{,")] or tokens)


def takes(grammar: Grammar, text: str) -> bool:
    """Return True if a grammar lets all of a text through, in which control tokens stand by their names."""
    rule = constraints().of(grammar, frozenset(), forces=False)
    assert rule is not None
    return all(map(rule.take, tokens_of(text))) and rule.complete


def fits(schema: Any, value: Any) -> bool:
    """Return True if the grammar of a schema lets a value through, as Python's ``json`` writes it."""
    return takes(json_grammar(schema), json.dumps(value, ensure_ascii=False))


def check_let_through(schema: Any, yes: Sequence[Any], no: Sequence[Any]) -> None:
    """Check that the grammar of a schema lets some values through, and not others."""
    assert [value for value in yes if not fits(schema, value)] == []
    assert [value for value in no if fits(schema, value)] == []
    assert constraints().of(json_grammar(schema), frozenset(), forces=False)  # and llguidance takes it


def tokens_of(text: str) -> list[int]:
    """The text byte by byte, as the vocabulary has it."""
    known = tokenizer()
    return [token for byte in text.encode() for token in [known._vocabulary.byte_ids[byte]]]


def check(value: Any, schema: Any) -> None:
    """Raises if the value is not valid against the schema, formats included."""
    kind = jsonschema.Draft202012Validator
    kind(schema, format_checker=kind.FORMAT_CHECKER).validate(value)
