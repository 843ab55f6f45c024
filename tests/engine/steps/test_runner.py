"""What a step may go on from: the tokens of the step before it, unless something came between."""

from __future__ import annotations

import itertools

import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.requests.request import Request, RequestSpec
from langchain_gemma_jax.engine.steps.in_flight import collect
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


def test_a_token_is_picked_before_the_turn_is_kept(on_owner, tiny_model, rng, monkeypatch):
    """A snapshot is a copy, which somebody who waits for a first token would wait for too."""

    def play(runner):
        done, run, keep = [], runner.run, runner.kv_store.keep
        monkeypatch.setattr(runner, "run", lambda key, *given: (done.append(key[0]), run(key, *given))[1])
        monkeypatch.setattr(runner.kv_store, "keep", lambda kept: (done.append("keep"), keep(kept))[1])
        one = request(tiny_model, text(rng, 30))
        assert runner.kv_store.take(one, runner.kv_store.plan(one))
        collect(runner.read(one), runner.device)
        runner.kv_store.release(one)
        return done

    assert on_owner(play)[-3:] == ["read", "pick", "keep"]


@pytest.mark.long
def test_steps_of_the_same_requests_in_other_rows_start_from_what_the_host_has_seen(
    engine_of, tiny_model, rng, monkeypatch
):
    """Whether a step has rows that nobody needs depends on which programs are there and on memory: it changes."""
    engine = engine_of(ladders=Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1, 2, 4), draft=0))
    served = engine.serve(tiny_model)
    runner, prompts = engine._owner.models.runners[served], [text(rng, 10) for _ in range(2)]

    def answers():
        asked = [engine.submit(served, prompt, Sampling(max_tokens=24, ignore_eos=True)) for prompt in prompts]
        return [each.result().ids for each in asked]

    def together(requests, _):
        count = min(len(requests), 2)
        wanted = next(rows) if count > 1 else 1
        assert runner.kv_store.pad(requests[0].on_device.resident.capacity, wanted - count)
        return count, wanted

    expected, rows = answers(), itertools.cycle((4, 4, 2, 2, 4, 2))
    monkeypatch.setattr(runner, "together", together)
    assert answers() == expected
