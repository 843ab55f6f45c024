"""Random walks through grammars: a model without any sense, that is held to them."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import jsonschema
import numpy as np

from langchain_gemma_jax.engine.grammar.nodes import Grammar
from langchain_gemma_jax.engine.requests.model_grammars import Constraints
from langchain_gemma_jax.engine.requests.request_constraint import Constraint
from tests.dialects.vocabulary import tokenizer


@cache
def constraints() -> Constraints:
    """One for all tests."""
    return Constraints(tokenizer(), tokenizer().vocab_size)


def walk(grammar: Grammar, rng: random.Random, most: int, *, hurry: float = 0.1) -> list[int]:
    """A text of up to ``most`` tokens, or of as many as it needs at least.

    Steps are drawn from what is allowed. ``hurry`` is how often it ends, or takes a control token, where it can.
    """
    known = tokenizer()
    stops = frozenset(known.eos_ids)
    rule = constraints().of(grammar, stops, forces=rng.random() < 0.5)
    assert rule is not None
    found: list[int] = []
    if not rule.active:
        found.append(known.control_id(grammar.opener))
        assert rule.take(found[0], 10**6)
    most = max(most, len(rule.ending()))
    while not rule.finished:
        for token in rule.forced():
            if not rule.take(token, most - len(found) - 1):
                return found + list(rule.ending())
            found.append(token)
        if rule.finished:
            break
        token = draw(rule, rng, hurry)
        if not rule.take(token, most - len(found) - 1):
            assert rule.cut_off
            return found + list(rule.ending())
        found.append(token)
        if token in stops:
            break
    assert len(found) <= most
    return found


def draw(rule: Constraint, rng: random.Random, hurry: float) -> int:
    rule.illegal = True  # so that there is a mask
    rule.prepare()
    rule.illegal = False
    assert rule.allowed is not None
    allowed = np.flatnonzero(np.unpackbits(rule.allowed.view(np.uint8), bitorder="little")).tolist()
    controls = [token for token in allowed if tokenizer().control_name(token)]
    return rng.choice(controls if controls and rng.random() < hurry else allowed)


def check(value: Any, schema: Any) -> None:
    """Raises if the value is not valid against the schema, formats included."""
    kind = jsonschema.Draft202012Validator
    kind(schema, format_checker=kind.FORMAT_CHECKER).validate(value)
