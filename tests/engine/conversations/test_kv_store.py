"""Where conversations live: what is pinned is never lost, scopes never meet, and the bytes are those of their pages."""

from __future__ import annotations

import threading
from collections import Counter

import jax
import pytest

from langchain_gemma_jax.engine.api import runner_factory
from langchain_gemma_jax.engine.base.pages import PageTotals
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.conversations import kv_store
from langchain_gemma_jax.engine.conversations.transfer_costs import TransferCosts
from langchain_gemma_jax.engine.device.page_pool import page_bytes
from langchain_gemma_jax.engine.residency import device_memory
from langchain_gemma_jax.errors import DeviceMemoryError
from tests.engine.tiny import BATCH, CONFIGS, ONE_SIZE, kv_store_of, settle, text


def greedy(count, **options):
    return Sampling(max_tokens=count, ignore_eos=True, **options)


SIZES = page_bytes(CONFIGS["local and global"].cache_layout, "float32", 8)


def pool_of(whole):
    """The budget with which a pool has so many pages of global layers, at least those of the longest conversation."""
    return 2 * whole * SIZES.whole


def check_books(engine, budget=None):
    """The report's bytes are those of the pages that conversations have, each counted once."""
    settle(engine)
    report, held = engine.report(), kv_store_of(engine).held
    residents = held.index.residents
    for book, pages in (
        (held.whole_pages, [page for resident in residents for page in resident.whole]),
        (held.local_pages, [page for resident in residents for page in resident.local.values()]),
    ):
        assert book._holders == Counter(pages)
    assert report.kv_bytes == held.index.nbytes() == sum(report.kv_bytes_by_scope.values())
    assert budget is None or report.kv_bytes <= report.kv_budget == budget
    assert not any(resident.leased for resident in residents)


# Pinned


@pytest.mark.long
@pytest.mark.parametrize("written_on", [0, 30])
def test_fifty_forks_of_one_prefix_with_twenty_evictions_get_the_tokens_of_cold_runs(
    written_on, engine_of, tiny_model, cold, rng
):
    budget = pool_of(16)
    engine = engine_of(kv_bytes=budget)
    served = engine.serve(tiny_model)
    prefix = text(rng, 40)
    prompts = [prefix + text(rng, rng.randint(1, 20)) for _ in range(50)]
    prompts += rng.sample(prompts, 20)
    rng.shuffle(prompts)
    engine.submit(served, prefix + text(rng, 1 + written_on), greedy(1), system=len(prefix)).result()
    for number, prompt in enumerate(prompts):
        done = engine.submit(served, prompt, greedy(5), system=len(prefix)).result()
        assert done.reused_tokens >= len(prefix)
        cold.expect(prompt, done, f"fork {number}")
        check_books(engine, budget)
    assert engine.report().evictions >= 20
    assert engine.report().prefilled_tokens < 1200


@pytest.mark.long
def test_branches_that_grow_at_the_same_time_do_not_touch_each_other(engine_of, tiny_model, cold, rng):
    engine = engine_of(ladders=BATCH, kv_bytes=pool_of(256))
    served = engine.serve(tiny_model)
    prefix = text(rng, 70)
    prompts = [[*prefix, 10 + branch, *text(rng, rng.randint(0, 8))] for branch in range(12)]
    all_there = threading.Event()
    engine._owner._work.inbox.call(all_there.wait)  # nothing is read before
    going = [engine.submit(served, prompt, greedy(12)) for prompt in prompts]
    all_there.set()
    for prompt, generation in zip(prompts, going, strict=True):
        cold.expect(prompt, generation.result())
    report = engine.report()
    # One reads what they begin with, and the others wait for it.
    assert report.prefilled_tokens == len(prefix) + sum(len(prompt) - len(prefix) for prompt in prompts)
    check_books(engine)


# Scopes


@pytest.mark.long
def test_another_scope_shares_nothing(engine_of, tiny_model, cold, rng):
    engine = engine_of(kv_bytes=pool_of(256))
    served = engine.serve(tiny_model)
    prompt = text(rng, 50)
    for scope, reused in [("", 0), ("", 49), ("a", 0), ("b", 0), ("a", 49), ("A", 0), ("a ", 0), ("", 49)]:
        done = engine.submit(served, prompt, greedy(4), scope=scope).result()
        assert done.reused_tokens == reused, scope
        cold.expect(prompt, done, scope)
    settle(engine)
    assert set(engine.report().kv_bytes_by_scope) == {"", "a", "b", "A", "a "}
    check_books(engine)


@pytest.mark.long
def test_requests_of_different_scopes_at_the_same_time_share_nothing_either(engine_of, tiny_model, cold, rng):
    engine = engine_of()
    served = engine.serve(tiny_model)
    prompt = text(rng, 110)
    both = [engine.submit(served, prompt, greedy(4), scope=scope) for scope in ("a", "b", "a")]
    done = [one.result() for one in both]
    assert [one.reused_tokens for one in done[:2]] == [0, 0]
    assert done[2].reused_tokens in range(110)  # as far as the first had come
    for one in done:
        cold.expect(prompt, one)


# The budget


def test_what_was_used_last_stays(engine_of, tiny_model, cold, rng):
    budget = pool_of(32)
    engine = engine_of(kv_bytes=budget)
    served = engine.serve(tiny_model)
    prompts = [text(rng, 70) for _ in range(4)]  # three of which fit

    def ask(number):
        done = engine.submit(served, prompts[number], greedy(3)).result()
        cold.expect(prompts[number], done)
        check_books(engine, budget)
        return done.reused_tokens

    assert [ask(0), ask(1), ask(2)] == [0, 0, 0]
    assert ask(0) == 69
    assert ask(3) == 0  # 1 goes
    assert engine.report().evictions == 1
    assert [ask(0), ask(2), ask(3)] == [69, 69, 69]
    assert ask(1) == 0


def test_idle_conversations_take_no_more_than_the_weights_unless_it_is_set(
    engine_of, tiny_model, cold, rng, monkeypatch
):
    monkeypatch.setattr(device_memory, "LEAST_IDLE", 0)
    weights = sum(array.nbytes for array in jax.tree.leaves(tiny_model.params))
    for settings, fits in (({}, True), ({"kv_bytes": pool_of(128)}, False)):
        engine = engine_of(**settings)
        served = engine.serve(tiny_model)
        for _ in range(6):
            prompt = text(rng, 70)
            cold.expect(prompt, engine.submit(served, prompt, greedy(2)).result())
            check_books(engine)
        assert (engine.report().kv_bytes <= weights) is fits
        assert (engine.report().evictions > 0) is fits


@pytest.mark.long
def test_a_conversation_shrinks_to_its_system_prompt(engine_of, tiny_model, cold, rng):
    budget = pool_of(16)
    engine = engine_of(kv_bytes=budget)
    served = engine.serve(tiny_model)
    system = text(rng, 40)
    first = system + text(rng, 50)
    cold.expect(first, engine.submit(served, first, greedy(9), system=40).result())
    other = text(rng, 80)
    cold.expect(other, engine.submit(served, other, greedy(4)).result())
    settle(engine)
    assert sorted(len(resident.keys) for resident in kv_store_of(engine).held.index.residents) == [40, 83]
    check_books(engine, budget)
    second = system + text(rng, 11)
    done = engine.submit(served, second, greedy(5), system=40).result()
    assert done.reused_tokens == 40
    cold.expect(second, done)
    check_books(engine, budget)


@pytest.mark.long
def test_two_conversations_that_do_not_fit_together_both_get_to_their_end(
    engine_of, tiny_model, cold, rng, monkeypatch
):
    monkeypatch.setattr(kv_store, "HEADROOM", 4)
    budget = pool_of(16)
    engine = engine_of(kv_bytes=budget)
    served = engine.serve(tiny_model)
    prompts = [text(rng, 30), text(rng, 33)]
    going = [engine.submit(served, prompt, greedy(90)) for prompt in prompts]
    sampled = Sampling(max_tokens=90, ignore_eos=True, temperature=0.5, seed=4)
    for prompt, one in zip(prompts, going, strict=True):
        done = one.result()
        assert (len(done.ids), done.reused_tokens) == (90, 0)
        cold.expect(prompt, done)
    report = engine.report()
    assert 1 <= report.preemptions <= 10
    assert report.generated_tokens == 180
    check_books(engine, budget)

    alone = engine_of()
    wanted = [alone.submit(alone.serve(tiny_model), prompt, sampled).result().ids for prompt in prompts]
    going = [engine.submit(served, prompt, sampled) for prompt in prompts]
    assert [one.result().ids for one in going] == wanted
    assert engine.report().preemptions > report.preemptions


@pytest.mark.long
def test_one_that_waits_for_memory_goes_on_from_what_it_had_read(engine_of, tiny_model, cold, rng, monkeypatch):
    monkeypatch.setattr(kv_store, "HEADROOM", 4)
    budget = pool_of(16)
    engine = engine_of(kv_bytes=budget)
    served = engine.serve(tiny_model)
    asked = [(text(rng, 17), 15), (text(rng, 90), 20)]  # the second has no page more, and gives way
    for (prompt, _), one in zip(
        asked, [engine.submit(served, prompt, greedy(count)) for prompt, count in asked], strict=True
    ):
        done = one.result()
        assert done.reused_tokens == 0  # what it made before it gave way was never somebody else's
        cold.expect(prompt, done)
    report = engine.report()
    assert (report.preemptions, report.prefilled_tokens, report.reused_tokens) == (1, 107, 0)
    check_books(engine, budget)


def test_what_does_not_fit_even_alone_is_an_error_and_the_next_one_works(engine_of, tiny_model, cold, rng):
    budget = SIZES.of(PageTotals(12, 4))
    engine = engine_of(kv_bytes=budget)
    served = engine.serve(tiny_model)
    small = text(rng, 10)
    with pytest.raises(DeviceMemoryError, match=f"100 tokens does not fit the {budget} bytes"):
        engine.submit(served, text(rng, 100), greedy(2)).result()
    cold.expect(small, engine.submit(served, small, greedy(4)).result())
    check_books(engine, budget)


def test_one_that_grows_beyond_the_budget_is_an_error_and_the_next_one_works(
    engine_of, tiny_model, cold, rng, monkeypatch
):
    monkeypatch.setattr(kv_store, "HEADROOM", 4)
    budget = SIZES.of(PageTotals(8, 3))
    engine = engine_of(kv_bytes=budget)
    served = engine.serve(tiny_model)
    small = text(rng, 10)
    going = engine.submit(served, text(rng, 50), greedy(78))
    got: list[int] = []
    with pytest.raises(DeviceMemoryError):
        got.extend(token for piece in going for token in piece.ids)
    assert len(got) == 15  # those that eight pages held, and the one behind them
    cold.expect(small, engine.submit(served, small, greedy(4)).result())
    check_books(engine, budget)


def test_with_any_budget_a_conversation_is_answered_or_refused(engine_of, tiny_model, cold, rng):
    """Its earlier turns are given up before it is refused, and it never waits for itself."""
    answered = 0
    for pages in range(2, 20, 3):
        budget = SIZES.of(PageTotals(pages, 0)) + rng.randrange(SIZES.whole)
        engine = engine_of(kv_bytes=budget)
        served, history, system = engine.serve(tiny_model), text(rng, 12), 9
        try:
            for _ in range(4):
                done = engine.submit(served, history, greedy(9), system=system).result()
                cold.expect(history, done, f"{budget} bytes")
                history += [*done.ids, *text(rng, rng.randint(1, 12))]
                check_books(engine, budget)
            answered += 1
        except DeviceMemoryError as error:
            assert f"does not fit the {budget} bytes" in str(error)  # noqa: PT017
            check_books(engine, budget)
    assert 0 < answered < 6


def test_a_conversation_that_is_alone_gives_up_its_earlier_turns_before_it_is_refused(engine_of, tiny_model, cold, rng):
    engine = engine_of(kv_bytes=SIZES.of(PageTotals(14, 4)))
    served, history = engine.serve(tiny_model), text(rng, 40)
    for _ in range(4):  # each turn's window is in a page or two, and the tokens of all of them are in thirteen
        done = engine.submit(served, history, greedy(9), system=20).result()
        cold.expect(history, done)
        check_books(engine)
        history += [*done.ids, *text(rng, 8)]
    assert len(history) == 108


@pytest.mark.long
def test_two_models_share_the_budget(engine_of, tiny_model, model_of, cold, cold_of, rng):
    other = model_of("all global")
    budget = SIZES.of(PageTotals(20, 8))
    engine = engine_of(kv_bytes=budget, ladders=ONE_SIZE)
    for _ in range(2):  # what one of them keeps gives way to the other
        for model, oracle in ((tiny_model, cold), (other, cold_of("all global"))):
            prompt = text(rng, 40)
            oracle.expect(prompt, engine.submit(engine.serve(model), prompt, greedy(20)).result())
            settle(engine)
            assert engine.report().kv_bytes <= budget
    cold_of("all global").check()
    assert engine.report().evictions >= 2


def test_everything_goes_when_the_engine_ends(engine_of, tiny_model, rng):
    engine = engine_of()
    served = engine.serve(tiny_model)
    for _ in range(3):
        engine.submit(served, text(rng, 60), greedy(3)).result()
    settle(engine)
    held = jax.tree.leaves(kv_store_of(engine).held.arrays.pool)
    assert held
    assert engine.close(30)
    assert all(array.is_deleted() for array in held)


def test_many_unrelated_requests_take_no_more_memory_than_idle_conversations_may_keep(
    engine_of, tiny_model, rng, monkeypatch
):
    bound = 12 * SIZES.whole
    monkeypatch.setattr(runner_factory, "idle_kv_budget", lambda *_: bound)
    monkeypatch.setattr(TransferCosts, "worth_keeping", lambda *_: True)
    for host, parked in ((None, False), (1 << 30, True)):  # on the CPU the host's memory is the device's
        engine = engine_of(ladders=ONE_SIZE, host_kv_bytes=host)
        served = engine.serve(tiny_model)
        for _ in range(40):
            engine.submit(served, text(rng, 20), greedy(2)).result()
            settle(engine)
            assert engine.report().kv_bytes <= bound
        assert (engine.report().host_kv_bytes > 0) == (engine.report().parked > 0) == parked
        assert engine.report().evictions > 20
        engine.close()
