"""Limits to what one schema may take, where no other limit comes first. What schemas mean: ``test_json_grammar.py``."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.errors import SchemaError
from langchain_gemma_jax.grammar.schema import json_schema


def listed(count):
    """A schema of so many members."""
    return {"type": "object", "properties": {f"member_{number}": {"type": "string"} for number in range(count)}}


def test_a_schema_has_so_many_parts_and_no_more(monkeypatch):
    monkeypatch.setattr(json_schema, "MAX_PARTS", 100)
    assert json_grammar(listed(20)).root is not None
    with pytest.raises(SchemaError, match="more than 100 parts once its references are followed"):
        json_grammar(listed(90))


def test_a_schema_may_take_so_long_and_no_longer(monkeypatch):
    monkeypatch.setattr(json_schema, "SECONDS", 0.0)
    monkeypatch.setattr(json_schema, "FREE_STEPS", 10)
    with pytest.raises(SchemaError, match="of a processor: it is too large"):
        json_grammar(listed(80))
