"""Outputs read again: the calls in them, each of which has to be whole."""

from __future__ import annotations

import json

from langchain_gemma_jax.dialects import ArgumentsDelta, CallBegin, CallEnd, Invalid, merged
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from tests.dialects.outputs import fed_ids
from tests.dialects.vocabulary import tokenizer

DIALECTS = [GemmaDialect(), FunctionGemmaDialect(), Gemma4Dialect()]


def read(dialect, ids, *, in_thought=False):
    return merged(fed_ids(dialect.parser(in_thought=in_thought), tokenizer(), ids, at_once=len(ids) or 1))


def calls(events):
    assert [event for event in events if isinstance(event, Invalid)] == []
    names = [event.name for event in events if isinstance(event, CallBegin)]
    told = [json.loads(event.json) for event in events if isinstance(event, ArgumentsDelta)]
    ends = [event.arguments for event in events if isinstance(event, CallEnd)]
    assert told == ends
    return list(zip(names, ends, strict=True))
