"""Drafts from past answers: the same tokens as without, and nothing of one scope in another."""

from __future__ import annotations

from collections import Counter

import pytest

from langchain_gemma_jax.engine.base.draft_sources import PROMPT, SUFFIXES
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from tests.engine.tiny import text

LETTERS = range(261, 264)
WAYS = {
    "greedy": {},
    "drawn": {"temperature": 0.7, "seed": 5},
    "cut": {"temperature": 0.7, "seed": 6, "top_k": 20, "top_p": 0.9},
    "penalized": {"temperature": 0.5, "seed": 7, "presence_penalty": 0.3, "frequency_penalty": 0.2},
}


def ask(engine, served, prompt, scope="", **sampling):
    asked = Sampling(**{"max_tokens": 24, "ignore_eos": True, **sampling})
    return engine.submit(served, prompt, asked, scope=scope).result()


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_that_was_given_before_is_given_again_faster_and_unchanged(way, engine_of, tiny_model, rng):
    engine, plain = engine_of(drafts=(SUFFIXES,)), engine_of()
    served, others = engine.serve(tiny_model), plain.serve(tiny_model)
    accepted = 0
    for _ in range(3):
        prompt = text(rng, 9)
        first, again = (ask(engine, served, prompt, **WAYS[way]) for _ in range(2))
        expected = ask(plain, others, prompt, **WAYS[way])
        assert (first.ids, first.text) == (again.ids, again.text) == (expected.ids, expected.text)
        accepted += again.drafts[SUFFIXES].accepted
        assert set(again.drafts) == {SUFFIXES}
        assert again.accepted_tokens == again.drafts[SUFFIXES].accepted
        assert expected.drafts == {}
    assert accepted > 30, "of 66 tokens behind the first ones"


def test_an_answer_that_only_begins_alike_is_unchanged(engine_of, tiny_model, rng):
    """Wrong drafts are checked, and leave nothing behind."""
    engine, plain = engine_of(drafts=(SUFFIXES,)), engine_of()
    served, others = engine.serve(tiny_model), plain.serve(tiny_model)
    dice = {"logit_bias": dict.fromkeys(LETTERS, 100.0), "temperature": 2.0, "max_tokens": 40}
    wrong = 0
    for seed in range(6):
        prompt = text(rng, 5)
        done, expected = (
            ask(where, model, prompt, seed=seed, **dice) for where, model in ((engine, served), (plain, others))
        )
        assert done.ids == expected.ids
        wrong += done.drafted_tokens - done.accepted_tokens
    assert wrong > 0


def test_what_is_drawn_is_distributed_as_without_drafts(engine_of, tiny_model, rng):
    """The drafts are one frequent answer; other seeds give others as often as ever."""
    prompt = text(rng, 8)
    counts = {}
    for drafts in (False, (SUFFIXES,)):
        engine = engine_of(drafts=drafts)
        served = engine.serve(tiny_model)
        few = {"logit_bias": dict.fromkeys(LETTERS, 100.0), "temperature": 1.5, "max_tokens": 4}
        counts[bool(drafts)] = Counter(ask(engine, served, prompt, seed=seed, **few).ids for seed in range(150))
        drafted = engine.report().drafted_tokens
        assert (drafted > 20) is bool(drafts)
    assert len(counts[True]) > 15
    assert counts[True] == counts[False]


def test_nothing_of_one_scope_is_drafted_in_another(engine_of, tiny_model, rng):
    engine = engine_of(drafts=(SUFFIXES,))
    served = engine.serve(tiny_model)
    prompt = text(rng, 9)
    ask(engine, served, prompt, "one")
    assert ask(engine, served, prompt, "other").drafted_tokens == 0
    assert ask(engine, served, prompt).drafted_tokens == 0
    assert ask(engine, served, prompt, "one").drafted_tokens > 0


def test_what_is_not_drafted_for_is_not_kept(engine_of, tiny_model, rng):
    engine = engine_of(drafts=(SUFFIXES,))
    served = engine.serve(tiny_model)
    prompt = text(rng, 9)
    ask(engine, served, prompt, drafts=False)
    assert ask(engine, served, prompt).drafted_tokens == 0


def test_an_unloaded_model_takes_its_answers_with_it(engine_of, model_of, rng):
    engine = engine_of(drafts=(SUFFIXES,))
    model, prompt = model_of("local and global"), text(rng, 9)
    served = engine.serve(model)
    ask(engine, served, prompt)
    engine.unload(served)
    assert ask(engine, engine.serve(model), prompt).drafted_tokens == 0


def test_both_sources_add_up_in_the_report(engine_of, tiny_model, rng):
    engine = engine_of(drafts=True)
    served = engine.serve(tiny_model)
    circle = (text(rng, 5) * 6)[:28]
    found = Counter()
    for _ in range(3):
        for prompt in (circle, text(rng, 7)):
            for _ in range(2):
                done = ask(engine, served, prompt)
                assert done.drafted_tokens == sum(count.drafted for count in done.drafts.values())
                assert done.accepted_tokens == sum(count.accepted for count in done.drafts.values())
                for source, count in done.drafts.items():
                    found[source, "drafted"] += count.drafted
                    found[source, "accepted"] += count.accepted
    report = engine.report()
    assert found[SUFFIXES, "accepted"] == report.accepted_from_suffixes > 0
    assert found[SUFFIXES, "drafted"] == report.drafted_from_suffixes
    assert found[PROMPT, "accepted"] == report.accepted_from_prompt
    assert found[PROMPT, "drafted"] == report.drafted_from_prompt > 0
    assert report.drafted_tokens == report.drafted_from_suffixes + report.drafted_from_prompt
    assert "from past answers" in str(report)
    assert "from the prompt" in str(report)
