import gc
from time import thread_time

from langchain_gemma_jax.grammar import spent_time
from langchain_gemma_jax.grammar.schema.json_schema import FREE_STEPS, SECONDS
from langchain_gemma_jax.grammar.spent_time import Allowance, spent


def test_the_collectors_time_is_nobodys():
    many = [[number] for number in range(300_000)]  # enough for a collection to be seen
    began, of_thread = spent(), thread_time()
    for _ in range(5):
        gc.collect()
    collected = thread_time() - of_thread
    assert collected > 0.005
    assert spent() - began < collected / 4
    assert len(many) == 300_000


def test_work_counts():
    began = spent()
    while spent() - began < 0.01:
        pass
    assert 0.01 <= spent() - began < 1.0


def test_an_ordinary_schema_is_never_refused_for_its_time(monkeypatch):
    from langchain_gemma_jax.dialects import json_grammar
    from langchain_gemma_jax.grammar.schema import json_schema

    assert SECONDS <= 0.1
    monkeypatch.setattr(json_schema, "SECONDS", 0.0)  # the slowest machine there is
    members = {f"member_{number}": {"type": "string", "minLength": 1} for number in range(FREE_STEPS // 4)}
    assert json_grammar({"type": "object", "properties": members}).root is not None


def test_the_processor_is_asked_rarely_and_an_allowance_ends(monkeypatch):
    asked = []
    monkeypatch.setattr(spent_time, "spent", lambda: asked.append(1) or spent())
    allowance, steps = Allowance(0.05), 0
    began = spent()
    while not allowance.is_spent():
        steps += 1
    assert spent() - began > 0.049
    assert steps > 10 * len(asked)
    assert allowance.is_spent()
