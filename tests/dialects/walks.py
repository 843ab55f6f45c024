"""Random walks through grammars: a model without any sense, that is held to them."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import jsonschema
import numpy as np

from langchain_gemma_jax.engine.constrain import Constraint
from langchain_gemma_jax.engine.constraints import Constraints
from langchain_gemma_jax.engine.grammar.nodes import Grammar
from tests.dialects.vocabulary import tokenizer


@cache
def constraints() -> Constraints:
    """One for all tests."""
    return Constraints(tokenizer(), tokenizer().vocab_size)


def walk(grammar: Grammar, rng: random.Random, most: int, *, hurry: float = 0.1) -> list[int]:
    """A text that ends by itself, or in the shortest way from where it has ``most`` tokens.

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
    while not rule.finished and len(found) < most:
        if forced := rule.forced():
            go_on(*forced)
        else:
            go_on(draw(rule, rng, hurry))
        if found[-1] in stops:
            return found
    return found + shortest(rule)


def shortest(rule: Constraint) -> list[int]:
    """The tokens by which a text is whole soonest."""
    known, found = tokenizer(), list[int]()
    for piece in rule._compiled.outline.ending(rule._place):
        if isinstance(piece, str):
            found.append(known.control_id(piece))
        else:
            found += [known._vocabulary.byte_ids[byte] for byte in piece]
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
