"""The engine from outside: what may be passed, what is served, what it reports."""

from __future__ import annotations

import weakref
from array import array

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.errors import CancelledRequestError, ClosedError, ContextLengthError, InputError
from tests.engine.faults_support import (
    LIMIT,
    SMALL,
    Holdings,
    assert_holds,
    assert_works,
    copied,
    greedy,
    idle_memory_dropped,
    in_threads,
    outcome,
    slowed,
)
from tests.engine.tiny import CONTEXT, settle, text

BIG = 2**63


@pytest.fixture
def small(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    engine.warmup(served)
    return engine, served


# What may be passed.


@pytest.mark.long
def test_ids_come_in_any_sequence(small):
    engine, served = small
    ids = [10, 300, 11, 12]
    kinds = [
        ids,
        tuple(ids),
        array("i", ids),
        array("q", ids),
        np.array(ids),
        np.array(ids, np.uint16),
        [np.int64(token) for token in ids],
        range(10, 14),
    ]
    found = [engine.submit(served, kind, greedy(3)).result().ids for kind in kinds]
    assert len(set(found[:-1])) == 1
    assert len(found[-1]) == 3


@pytest.mark.long
def test_the_callers_array_is_copied(small):
    engine, served = small
    ids = array("i", [10, 11, 12])
    with slowed(0.01):
        generation = engine.submit(served, ids, greedy(10))
        ids[0] = 99
        ids.append(5)
        del ids[:]
        changed = generation.result().ids
    assert changed == engine.submit(served, [10, 11, 12], greedy(10), scope="other").result().ids


WRONG_PROMPTS = {
    "nothing": ([], "one token at least"),
    "no array entry": (np.zeros(0, np.int32), "one token at least"),
    "a float": ([1, 2.0], "float"),
    "a float array": (np.ones(3), "float"),
    "NaN": ([float("nan")], "float"),
    "True": ([1, True], "True or False"),
    "a bool array": (np.ones(3, bool), ""),
    "negative": ([5, -1], "found -1"),
    "the vocabulary's size": ([320], "from 0 to 319, found 320"),
    "huge": ([BIG], f"found {BIG}|too big|too large|out of range"),
    "very negative": ([-BIG], f"found {-BIG}|too large"),
    "very huge": ([10**400], "too big|too large|out of range"),
    "a str": ("abc", "found str"),
    "bytes": (b"\x05\0\0\0", "found bytes"),
    "a bytearray": (bytearray(b"\x05\0\0\0"), "found bytearray"),
    "strs": (["a"], "str"),
    "None": (None, "found NoneType"),
    "an int": (5, "found int"),
    "a generator": ((token for token in [1, 2]), "found generator"),
    "rows": ([[1, 2]], "list"),
    "an array with rows": (np.ones((2, 2), np.int32), ""),
    "an array without a length": (np.int64(5), ""),
}


@pytest.mark.parametrize("name", WRONG_PROMPTS)
def test_ids_that_are_none_are_refused_at_once(small, name):
    engine, served = small
    prompt, said = WRONG_PROMPTS[name]
    with pytest.raises(InputError, match=f"^prompt: expected .*({said})"):
        engine.submit(served, prompt, greedy(1))
    assert_works(engine, served)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 31, 32, 33, CONTEXT - 2, CONTEXT - 1])
def test_prompts_of_any_length_that_fits(small, length):
    engine, served = small
    found = engine.submit(served, [10] * length, greedy(200)).result()
    assert len(found.ids) == CONTEXT - length
    assert found.finish_reason == "length"


@pytest.mark.parametrize("length", [CONTEXT, CONTEXT + 1, 10**7])
def test_a_prompt_that_does_not_fit_is_refused_by_how_much(small, length):
    engine, served = small
    with pytest.raises(ContextLengthError) as raised:
        engine.submit(served, range(length), greedy(1))
    assert raised.value.excess == length - (CONTEXT - 1)
    assert str(raised.value.excess) in str(raised.value)
    assert_works(engine, served)


NUMBERS = [-BIG, -1, 0, 1, 2, CONTEXT, BIG, 10**400, float("inf"), float("-inf"), float("nan"), True, "1", None, 0.5]
NUMERIC = [
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "max_tokens",
    "top_logprobs",
]


@pytest.mark.parametrize("name", NUMERIC)
def test_every_number_is_refused_or_right(small, name):
    engine, served = small
    taken, refused = 0, []
    for value in NUMBERS:
        options = {"max_tokens": 3, "ignore_eos": True, "logprobs": name == "top_logprobs", name: value}
        try:
            sampling = Sampling(**options)
        except InputError as error:
            refused.append(str(error))
            continue
        taken += 1
        found = engine.submit(served, [10, 11], sampling, timeout=LIMIT).result()
        wanted = (CONTEXT - 2 if value is None else min(value, CONTEXT - 2)) if name == "max_tokens" else 3
        assert len(found.ids) == wanted, f"{name}={value}"
        assert all(0 <= token < 320 for token in found.ids)
    assert taken
    assert all(name in error for error in refused)
    assert_works(engine, served)


@pytest.mark.parametrize("name", ["timeout", "system", "max_context"])
def test_every_number_beside_them_is_refused_or_right(small, name):
    engine, served = small
    taken, refused = [], []
    for value in NUMBERS:
        try:
            if name == "max_context":
                engine.warmup(served, max_context=value)
            else:
                outcome(engine.submit(served, [10, 11], greedy(1), **{name: value}))
        except InputError as error:
            refused.append(str(error))
        else:
            taken.append(value)
    assert all(name in error for error in refused)
    assert (
        taken
        == {
            "timeout": [0, 1, 2, CONTEXT, None, 0.5],
            "system": [0, 1, 2],
            "max_context": [1, 2, CONTEXT, None],
        }[name]
    )
    assert_works(engine, served)


@pytest.mark.parametrize("scope", [None, 1, b"a", ["a"]])
def test_a_scope_is_a_string(small, scope):
    engine, served = small
    with pytest.raises(InputError, match="scope: expected a string"):
        engine.submit(served, [10], greedy(1), scope=scope)


@pytest.mark.parametrize("sampling", [{}, {"max_tokens": 3}, "greedy", 0, False])
def test_sampling_is_sampling(small, sampling):
    engine, served = small
    with pytest.raises(InputError, match=r"sampling: expected Sampling\(\.\.\.\) or None"):
        engine.submit(served, [10], sampling)


def test_a_bias_for_a_token_that_the_model_does_not_have_is_refused(small):
    engine, served = small
    with pytest.raises(InputError, match="logit_bias: expected token ids from 0 to 319, found 320"):
        engine.submit(served, [10], greedy(1, logit_bias={5: 1.0, 320: 1.0}))
    biased = engine.submit(served, [10], greedy(3, logit_bias={319: -100.0, 77: 100.0})).result()
    assert biased.ids == (77, 77, 77)


@pytest.mark.parametrize("served", [None, "a", [], {}, 5])
def test_what_is_not_served_is_refused(small, served, tiny_model):
    engine, _ = small
    for wrong in (served, tiny_model):
        for call in (
            lambda wrong=wrong: engine.submit(wrong, [10]),
            lambda wrong=wrong: engine.unload(wrong),
        ):
            with pytest.raises(InputError, match=r"is not served by this engine\. Use what its load\(\) or serve\(\)"):
                call()
    with pytest.raises(InputError, match="expected a model"):
        engine.serve(served)


@pytest.mark.parametrize("source", [None, 3, b"folder", ["a"], object()])
def test_a_source_is_a_path_or_an_id(small, source):
    engine, served = small
    with pytest.raises(InputError, match="expected a folder or a model's id"):
        engine.load(source)
    assert_works(engine, served)


# What is served.


def test_one_model_is_served_once_however_many_threads_ask(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL)
    found = in_threads(16, lambda _: engine.serve(tiny_model))
    assert len({id(served) for served in found}) == 1
    assert len(engine._owner.models.runners) == 1
    assert_works(engine, found[0])


def test_a_model_that_was_closed_is_not_served(engine_of, tiny_model):
    engine, mortal = engine_of(ladders=SMALL), copied(tiny_model)
    mortal.close()
    with pytest.raises(ClosedError, match="Load it again"):
        engine.serve(mortal)
    assert_works(engine, engine.serve(tiny_model))


def test_two_models_at_once(small, tiny_model, rng):
    engine, served = small
    other = engine.serve(copied(tiny_model))
    prompts = [text(rng, 10) for _ in range(6)]
    alone = [engine.submit(served, prompt, greedy(5), scope="alone").result().ids for prompt in prompts]
    generations = [engine.submit(each, prompt, greedy(5)) for prompt in prompts for each in (served, other)]
    assert [generation.result().ids for generation in generations] == [ids for ids in alone for _ in range(2)]


def test_unloading_frees_everything_without_a_collection(small, tiny_model):
    engine, served = small
    idle_memory_dropped(engine)
    before = Holdings.now()
    mortal = copied(tiny_model)
    weights = weakref.ref(mortal)
    other = engine.serve(mortal)
    assert_works(engine, other)
    assert_works(engine, served)
    kept = engine.report().kv_bytes
    engine.unload(other)
    assert 0 < engine.report().kv_bytes < kept
    with pytest.raises(InputError, match="not served"):
        engine.unload(other)
    with pytest.raises(InputError, match="not served"):
        engine.submit(other, [10])
    del mortal, other
    assert weights() is None
    idle_memory_dropped(engine)
    assert_holds(before)
    assert_works(engine, served)


def test_a_model_in_use_is_not_unloaded(small, tiny_model):
    engine, _ = small
    other = engine.serve(copied(tiny_model))
    with slowed(0.01):
        generation = engine.submit(other, [10], greedy(30))
        with pytest.raises(InputError, match="in use"):
            engine.unload(other)
        assert len(generation.result().ids) == 30
    settle(engine)
    engine.unload(other)


def test_a_request_that_meets_the_unloading_is_told_and_harms_nobody(small, tiny_model, monkeypatch):
    engine, served = small
    other = engine.serve(copied(tiny_model))
    with slowed(0.01):
        lives = engine.submit(served, [10], greedy(20))
        offer = engine._owner.offer

        def unloaded_between_its_check_and_its_offer(*arguments):
            engine.unload(other)
            return offer(*arguments)

        monkeypatch.setattr(engine._owner, "offer", unloaded_between_its_check_and_its_offer)
        late = engine.submit(other, [10], greedy(20))
        monkeypatch.undo()
        with pytest.raises(ClosedError, match="was unloaded"):
            late.result()
        assert len(lives.result().ids) == 20
    assert_works(engine, served)


def test_closing_frees_everything_and_tells_those_who_wait(engine_of, tiny_model):
    before = Holdings.now()
    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    with slowed(0.01):
        generations = [engine.submit(served, [10 + index], greedy(100)) for index in range(8)]
        next(iter(pieces := iter(generations[0])))
        assert engine.close(LIMIT)
        for generation in generations[1:]:
            with pytest.raises(ClosedError, match=r"engine\(\) starts a new one"):
                generation.result()
        with pytest.raises(ClosedError):
            list(pieces)
    assert engine.close()
    for call in (
        lambda: engine.submit(served, [10]),
        lambda: engine.serve(tiny_model),
        lambda: engine.warmup(served),
        lambda: engine.load("."),
    ):
        with pytest.raises(ClosedError, match=r"engine\(\) starts a new one"):
            call()
    report = engine.report()
    assert (report.requests, report.failed, report.running, report.waiting) == (8, 8, 0, 0)
    assert (report.kv_bytes, report.kv_bytes_by_scope) == (0, {})
    assert_holds(before)
    assert not tiny_model.closed
    again = engine_of(ladders=SMALL)
    assert_works(again, again.serve(tiny_model))


# What it reports.


def test_the_report_counts_what_was_done(small, rng):
    engine, served = small
    before = engine.report()
    prompt = text(rng, 20)
    first = engine.submit(served, prompt, greedy(5), scope="a").result()
    engine.submit(served, [*prompt, *first.ids, 10, 11], greedy(3), scope="a").result()
    engine.submit(served, prompt, greedy(1), scope="b").result()
    settle(engine)
    report = engine.report()
    assert report.requests - before.requests == 3
    assert report.failed == 0
    assert report.prefilled_tokens - before.prefilled_tokens == 20 + 3 + 20
    assert report.reused_tokens - before.reused_tokens == 24
    assert report.generated_tokens - before.generated_tokens == 9
    assert report.compiles == before.compiles
    assert report.dispatches > before.dispatches
    assert 0 < report.step_bytes_to_device - before.step_bytes_to_device < report.bytes_to_device
    assert (
        report.programs
        == before.programs
        == report.program_bound
        == len(engine._owner.models.runners[served].device.bound)
    )
    assert set(report.kv_bytes_by_scope) == {"a", "b"}
    held = sum(
        leaf.nbytes
        for resident in engine._owner.models.runners[served].kv_store.index.residents
        for handle in {id(h): h for h in [resident.handle, *(kept.handle for kept in resident.snapshots)]}.values()
        for leaf in jax.tree.leaves(handle)
    )
    assert sum(report.kv_bytes_by_scope.values()) == held
    assert held <= report.kv_bytes <= report.kv_budget
    assert "prompt tokens" in str(report)


def test_the_settings_are_those_of_the_engine(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL, kv_bytes=10**6, max_context=50)
    served = engine.serve(tiny_model)
    settle(engine)
    assert engine.report().kv_budget == 10**6
    assert served.max_context == 50
    with pytest.raises(ContextLengthError):
        engine.submit(served, range(50))


def test_reconfiguring_takes_what_it_can_and_all_or_nothing():
    engine = Engine(Settings())
    try:
        engine.reconfigure(Settings(max_waiting=3))
        assert engine.settings.max_waiting == 3
        with pytest.raises(InputError, match="kv_bytes, scope_share cannot be changed"):
            engine.reconfigure(Settings(max_waiting=4, kv_bytes=5, scope_share=0.5, guards="off"))
        assert engine.settings == Settings(max_waiting=3)
    finally:
        assert engine.close(10)


def test_each_request_that_ends_is_told_of_once_with_what_it_cost(small):
    engine, served = small
    seen = []
    enough = engine.on_finished(seen.append)
    done = engine.submit(served, [2, 10, 11, 12], greedy(5), scope="a", app="my-agent").result()
    unwanted = engine.submit(served, [2, 10, 11, 12], greedy(100), scope="b")
    unwanted.cancel()
    with pytest.raises(CancelledRequestError):
        unwanted.result()
    settle(engine)
    enough()
    engine.submit(served, [2, 10, 11, 12], greedy(5)).result()
    good, gone = seen
    assert (good.model, good.scope, good.app, good.outcome, good.failed) == (
        served.name,
        "a",
        "my-agent",
        "length",
        False,
    )
    assert (good.prompt_tokens, good.generated_tokens, good.timings) == (4, 5, done.timings)
    assert (gone.scope, gone.app, gone.outcome, gone.failed) == ("b", "", "CancelledRequestError", True)
