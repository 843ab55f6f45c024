"""A step continues from the tokens of the step before it, unless something came between."""

from __future__ import annotations

import itertools

import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.requests.request import Request, RequestSpec
from langchain_gemma_jax.models.tokenizer import StreamDecoder
from tests.engine.tiny import CONTEXT, text


@pytest.fixture
def on_owner(engine_of, tiny_model):
    """``on_owner(function)``: run ``function(runner)`` on the engine's thread."""
    engine = engine_of()
    runner = engine._owner.models.runners[engine.serve(tiny_model)]
    return lambda function: engine._owner.call(lambda: function(runner))


def request(model, prompt):
    asked = RequestSpec("m", Prompt.of_tokens(prompt), Sampling(), 0, frozenset(), CONTEXT)
    return Request(asked, StreamDecoder(model.tokenizer))


@pytest.mark.long
def test_steps_of_the_same_requests_in_other_rows_start_from_what_the_host_has_seen(
    engine_of, tiny_model, rng, monkeypatch
):
    """Unneeded rows of a step depend on which programs are there and on memory: their number changes."""
    engine = engine_of(ladders=Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1, 2, 4), draft=0))
    served = engine.serve(tiny_model)
    runner, prompts = engine._owner.models.runners[served], [text(rng, 10) for _ in range(2)]

    def answers():
        asked = [engine.submit(served, prompt, Sampling(max_tokens=24, ignore_eos=True)) for prompt in prompts]
        return [each.result().ids for each in asked]

    def together(requests, _):
        count = min(len(requests), 2)
        wanted = next(rows) if count > 1 else 1
        return count, wanted

    expected, rows = answers(), itertools.cycle((4, 4, 2, 2, 4, 2))
    monkeypatch.setattr(runner, "together", together)
    assert answers() == expected
