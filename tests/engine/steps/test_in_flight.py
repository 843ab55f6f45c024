"""Steps ahead of what the host has seen: their tokens are for those who still go the same way."""

from __future__ import annotations

import pytest

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


def read(runner, request):
    """Read the rest of a request's context, with pages for it."""
    assert runner.kv_store.grow(request.on_device.resident, runner.chunks.next_end(request))
    return runner.read(request)


def step(runner, request):
    """Run a step of a request, with pages for it."""
    assert runner.kv_store.grow(request.on_device.resident, request.held + request.progress.issued + 1)
    return runner.step((request,))


@pytest.mark.long
def test_a_step_feeds_the_next_one_until_its_request_starts_again(on_owner, tiny_model, rng):
    def play(runner):
        one, other = (request(tiny_model, text(rng, 10)) for _ in range(2))
        for each in (one, other):
            assert runner.kv_store.take(each, runner.kv_store.plan(each))
            (made,) = collect(read(runner, each), runner.device)
            each.progress.context.extend(made.tokens)
            runner.learn(each)
        seen = [runner.follows((one,))]
        flight = step(runner, one)
        seen += [runner.follows((one,)), runner.follows((one, other)), runner.follows((other,))]
        (made,) = collect(flight, runner.device)
        one.progress.context.extend(made.tokens)
        runner.learn(one)
        seen.append(runner.follows((one,)))
        # It loses its memory, and reads again: what stands on the device is not its newest token any more.
        runner.kv_store.held.drop(one.on_device.resident)
        one.on_device.resident = None
        assert runner.kv_store.take(one, runner.kv_store.plan(one))
        collect(read(runner, one), runner.device)
        seen.append(runner.follows((one,)))
        for each in (one, other):
            runner.kv_store.release(each)
        return seen

    assert on_owner(play) == [False, True, False, False, True, False]


def test_prompt_tokens_are_counted_once_however_far_ahead_steps_are(on_owner, tiny_model, rng):
    def play(runner):
        one = request(tiny_model, text(rng, 1))
        assert runner.kv_store.take(one, runner.kv_store.plan(one))
        before = runner._metrics.prefilled_tokens
        flights = [step(runner, one), step(runner, one)]
        for flight in flights:
            collect(flight, runner.device)
        runner.kv_store.release(one)
        return runner._metrics.prefilled_tokens - before

    assert on_owner(play) == 1
