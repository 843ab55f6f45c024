"""The past answers of a model's scopes: apart, bounded, forgotten."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.engine.base.draft_sources import PROMPT, SOURCES, SUFFIXES
from langchain_gemma_jax.engine.drafting.model_drafts import ModelDrafts


def answer(drafts, scope, prompt, tokens):
    """Have an answer given to a request of a scope."""
    drafts.add(scope, prompt, tokens, drafts.drafter(scope))


def test_what_one_scope_was_told_is_proposed_to_no_other():
    """A thousand conversations of two tenants, who say the same but for the tokens behind it."""
    for seed in range(5):
        rng = random.Random(seed)
        drafts, own = ModelDrafts(SOURCES, 7), {"a": 1_000, "b": 2_000}
        said = 0
        for _ in range(200):
            scope = rng.choice("ab")
            question = [rng.randrange(20) for _ in range(8)]
            drafter = drafts.drafter(scope)
            draft = drafter.propose(question, 100)
            said += any(token >= 1_000 for token in draft)
            assert all(token < 1_000 or own[scope] <= token < own[scope] + 1_000 for token in draft)
            drafts.add(scope, question, [own[scope] + rng.randrange(1_000) for _ in range(10)], drafter)
            # The same question in both: what followed it in one must not come to the other.
            for other in "ab":
                found = drafts.drafter(other).propose(question, 100)
                assert all(token < 1_000 or own[other] <= token < own[other] + 1_000 for token in found)
                said += any(token >= 1_000 for token in found)
        assert said > 100, "something was proposed at all"


def test_bytes_stay_in_their_bound_and_the_scope_that_was_used_least_recently_goes():
    drafts = ModelDrafts(SOURCES, 7, most_bytes=200_000)
    rng = random.Random(1)
    for number in range(500):
        answer(drafts, f"tenant {number}", [1], [rng.randrange(1000) for _ in range(rng.randrange(1, 200))])
        assert 0 < drafts.nbytes <= 200_000
        drafts.past(f"tenant {max(0, number - 3)}")
    assert drafts.scopes[-1] == "tenant 496", "the one that was asked for last"
    assert 10 < len(drafts.scopes) < 100
    assert drafts.past("tenant 0") is None


def test_one_scope_alone_keeps_to_the_bound_too():
    drafts = ModelDrafts(SOURCES, 7)
    for _ in range(40):
        answer(drafts, "a", [], [*range(4000)])
    assert drafts.nbytes < 2**21
    tiny = ModelDrafts(SOURCES, 7, most_bytes=1000)
    answer(tiny, "a", [], [1, 2, 3])
    assert (tiny.scopes, tiny.nbytes) == ((), 0)


def test_what_is_forgotten_is_not_proposed():
    drafts = ModelDrafts(SOURCES, 7)
    for scope in ("a", "b", "c"):
        answer(drafts, scope, [1, 2, 3], [4, 5, 6])
    assert drafts.drafter("a").propose([1, 2, 3], 100) != ()
    drafts.forget("a")
    assert drafts.drafter("a").propose([1, 2, 3], 100) == ()
    assert drafts.drafter("b").propose([1, 2, 3], 100) != ()
    drafts.forget()
    assert (drafts.scopes, drafts.nbytes) == ((), 0)
    assert drafts.drafter("b").propose([1, 2, 3], 100) == ()
    drafts.forget("never seen")


@pytest.mark.parametrize(("sources", "most"), [((), 7), (SOURCES, 0)])
def test_without_sources_or_room_there_are_no_drafts(sources, most):
    drafts = ModelDrafts(sources, most)
    assert not drafts.on
    assert drafts.drafter("") is None


def test_a_source_that_is_not_chosen_is_not_asked_and_keeps_nothing():
    prompt = ModelDrafts((PROMPT,), 7)
    answer(prompt, "a", [1, 2, 3], [4, 5, 6])
    assert prompt.drafter("a").propose([1, 2, 3], 100) == ()
    assert len(prompt.past("a")) == 0
    assert prompt.drafter("a").propose([1, 2, 3, 4, 1, 2, 3], 100) != ()
    suffixes = ModelDrafts((SUFFIXES,), 7)
    answer(suffixes, "a", [1, 2, 3], [4, 5, 6])
    assert suffixes.drafter("a").propose([1, 2, 3], 100) != ()
    assert suffixes.drafter("a").propose([7, 8, 9, 4, 7, 8, 9], 100) == ()


def test_a_request_begins_with_the_trust_that_the_last_one_of_its_scope_ended_with():
    drafts = ModelDrafts((SUFFIXES,), 7)
    answer(drafts, "a", [1, 2, 3], [4, 5, 6, 7, 8, 9, 10])
    first = drafts.drafter("a")
    for at in range(20):
        draft = first.propose([at, 1, 2, 3], 100)
        if not draft:
            break
        first.record(len(draft), 0)
    assert first.trust[SUFFIXES] < 0.6
    drafts.add("a", [1], [2], first)
    assert drafts.drafter("a").trust[SUFFIXES] == pytest.approx((1 + first.trust[SUFFIXES]) / 2)
    assert drafts.drafter("b").trust[SUFFIXES] == 1.0, "another scope knows nothing of it"
