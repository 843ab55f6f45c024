"""The same seed gives the same text, whatever else runs, in whatever sizes it is read, with drafts and without."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.errors import CancelledRequestError
from tests.engine.tiny import BATCH, CONTEXT, LADDERS, text

COUNT = 24
WAYS = {
    "plain": {},
    "flat": {"temperature": 3.0},
    "filtered": {"temperature": 1.5, "top_k": 40, "top_p": 0.9, "min_p": 0.01},
    "penalized": {"repetition_penalty": 1.8, "presence_penalty": 0.5, "frequency_penalty": 0.7},
    "biased": {"logit_bias": {40: 4.0, 41: -100.0}},
}
OTHER_CHUNKS = Ladders(chunks=(8,), capacities=(CONTEXT,), rows=(1, 8))
LOOPS = Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1, 4))


def sampled(way="plain", seed=7, **options):
    return Sampling(
        **({"temperature": 0.4, "seed": seed, "max_tokens": COUNT, "ignore_eos": True} | WAYS[way] | options)
    )


@pytest.fixture
def prompt(rng):
    return text(rng, 27)


@pytest.fixture
def others(rng):
    return [text(rng, rng.randint(1, 60)) for _ in range(7)]


def alone(engine, model, prompt, sampling):
    return engine.submit(engine.serve(model), prompt, sampling).result()


@pytest.fixture
def expected(engine_of, tiny_model, prompt):
    """By way: what comes of the prompt in an engine of its own, one request after the other."""
    engine = engine_of()
    found = {way: alone(engine, tiny_model, prompt, sampled(way)).ids for way in WAYS}
    assert len(set(found.values())) == len(WAYS)
    assert engine.report().reused_tokens == (len(WAYS) - 1) * (len(prompt) - 1)  # so reuse changes nothing either
    return found


@pytest.mark.long
def test_seeds_differ_and_a_seed_is_kept(engine_of, tiny_model, prompt):
    engine = engine_of()
    served = engine.serve(tiny_model)
    texts = {seed: engine.submit(served, prompt, sampled(seed=seed)).result().text for seed in (1, 2, 3, 2**64 - 1, -1)}
    assert len(set(texts.values())) == 4
    assert texts[-1] == texts[2**64 - 1]
    assert engine.submit(served, prompt, sampled(seed=2)).result().text == texts[2]
    first, second = (engine.submit(served, prompt, sampled(seed=None)).result().text for _ in range(2))
    assert first != second


@pytest.mark.long
@pytest.mark.parametrize("ladders", [BATCH, pytest.param(LADDERS, marks=pytest.mark.slow)], ids=["one size", "all"])
def test_a_batch_of_eight_gives_each_what_it_gets_alone(ladders, engine_of, tiny_model, prompt, others, expected):
    engine = engine_of(ladders=ladders)
    served = engine.serve(tiny_model)
    neighbors = [engine.submit(served, other, sampled(seed=seed)) for seed, other in enumerate(others)]
    one = engine.submit(served, prompt, sampled())
    assert one.result().ids == expected["plain"]
    together = [neighbor.result().ids for neighbor in neighbors]
    assert engine.report().steps < 4 * COUNT  # they shared them
    apart = engine_of()
    assert together == [alone(apart, tiny_model, other, sampled(seed=i)).ids for i, other in enumerate(others)]


@pytest.mark.long
def test_every_kind_of_sampling_meets_in_one_batch(engine_of, tiny_model, prompt, expected):
    engine = engine_of(ladders=BATCH)
    served = engine.serve(tiny_model)
    going = {way: engine.submit(served, prompt, sampled(way)) for way in WAYS}
    assert {way: generation.result().ids for way, generation in going.items()} == expected


@pytest.mark.long
def test_other_chunks_and_capacities_change_nothing(engine_of, tiny_model, prompt, expected):
    engine = engine_of(ladders=OTHER_CHUNKS)
    assert {way: alone(engine, tiny_model, prompt, sampled(way)).ids for way in WAYS} == expected


def test_a_neighbor_that_is_cancelled_changes_nothing(engine_of, tiny_model, prompt, others, expected):
    engine = engine_of(ladders=BATCH)
    served = engine.serve(tiny_model)
    neighbors = [engine.submit(served, other, sampled(seed=1, max_tokens=60)) for other in others[:3]]
    one = engine.submit(served, prompt, sampled())
    for place, _ in enumerate(one):
        if place in {2, 5, 9}:
            neighbors.pop().cancel()
    assert one.result().ids == expected["plain"]
    assert engine.report().failed == 3


@pytest.mark.long
def test_a_cancelled_request_leaves_what_the_next_one_can_go_on_from(engine_of, tiny_model, prompt, expected):
    engine = engine_of()
    served = engine.serve(tiny_model)
    first = engine.submit(served, prompt, sampled(max_tokens=90))
    next(iter(first))
    with pytest.raises(CancelledRequestError):
        first.result()
    again = engine.submit(served, prompt, sampled()).result()
    assert (again.ids, again.reused_tokens) == (expected["plain"], len(prompt) - 1)


# Drafts


def repeating(rng):
    """A prompt that goes in circles, so that drafts are made, and scores that make the answer go on like that."""
    circle = text(rng, 6)
    return (circle * 8)[:45]


@pytest.mark.long
@pytest.mark.parametrize("way", [None, *WAYS])
def test_drafts_change_nothing(way, engine_of, tiny_model, rng):
    prompt = repeating(rng)
    sampling = Sampling(max_tokens=60, ignore_eos=True)
    if way is not None:  # in each of them, it tends to repeat itself
        fond = (
            {"repetition_penalty": 0.5, "presence_penalty": -1.0, "frequency_penalty": -1.0}
            if way == "penalized"
            else {}
        )
        sampling = sampled(way, max_tokens=60, temperature=0.15, **fond)
    engine = engine_of(drafts=True)
    with_drafts = alone(engine, tiny_model, prompt, sampling)
    assert with_drafts.drafted_tokens > 0
    plain = alone(engine_of(), tiny_model, prompt, sampling)
    assert plain.drafted_tokens == 0
    assert (with_drafts.ids, with_drafts.text) == (plain.ids, plain.text)


# Several steps in one dispatch


@pytest.mark.long
@pytest.mark.parametrize("drafts", [False, True])
def test_the_loop_form_makes_the_same_tokens(drafts, engine_of, tiny_model, prompt, others, expected):
    engine = engine_of(loop_steps=4, ladders=LOOPS, drafts=drafts)
    served = engine.serve(tiny_model)
    going = [engine.submit(served, other, sampled(seed=i)) for i, other in enumerate(others[:2])]
    assert {way: engine.submit(served, prompt, sampled(way)).result().ids for way in WAYS} == expected
    steps = engine_of()
    assert [one.result().ids for one in going] == [
        alone(steps, tiny_model, other, sampled(seed=i)).ids for i, other in enumerate(others[:2])
    ]


@pytest.mark.long
def test_the_loop_stops_where_a_step_would(engine_of, tiny_model, prompt, expected):
    engine = engine_of(loop_steps=4, ladders=LOOPS)
    for length in range(1, 10):
        assert alone(engine, tiny_model, prompt, sampled(max_tokens=length)).ids == expected["plain"][:length]
        stop = expected["plain"][length]
        done = alone(engine, tiny_model, prompt, sampled(stop_ids=(stop,)))
        assert (done.ids, done.stop) == (expected["plain"][: expected["plain"].index(stop) + 1], stop)


@pytest.mark.long
def test_a_loop_keeps_the_window_of_the_turn_before_it(engine_of, tiny_model, cold, rng):
    engine = engine_of(loop_steps=4, ladders=LOOPS)
    served = engine.serve(tiny_model)
    for length in (9, 10, 11, 12):
        prompt = text(rng, length)
        first = engine.submit(served, prompt, Sampling(ignore_eos=True, max_tokens=40)).result()
        fork = [*prompt, *first.ids][:18] + text(rng, 3)
        done = engine.submit(served, fork, Sampling(ignore_eos=True, max_tokens=4)).result()
        assert done.reused_tokens == 16, "the pages of the window behind the prompt, full"
        cold.expect(fork, done)


@pytest.mark.long
def test_a_loop_with_idle_rows_forgets_nothing_that_it_says_it_holds(engine_of, model_of, cold_of, rng):
    """A row that is done while others go on writes nothing."""
    cold, ladders = cold_of("a wide window"), Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1, 2))
    engine = engine_of(loop_steps=4, ladders=ladders)
    served = engine.serve(model_of("a wide window"))

    def ask(prompt, count):
        return engine.submit(served, prompt, Sampling(ignore_eos=True, max_tokens=count, logprobs=True))

    for _ in range(4):
        beside = ask(text(rng, 6), 110)
        prompt = text(rng, 53)
        cold.expect(prompt, ask(prompt, 4).result())  # three of them in one loop, and then 56 tokens: a full ring
        fork = [*prompt[:30], *text(rng, 3)]
        cold.expect(fork, ask(fork, 4).result(), "fork")
        beside.cancel()
    cold.check()
