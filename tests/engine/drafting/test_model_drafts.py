"""The past answers of a model's scopes: apart, bounded, forgotten."""

from __future__ import annotations

import random
import time

import pytest

from langchain_gemma_jax.engine.base.draft_sources import PROMPT, SOURCES, SUFFIXES
from langchain_gemma_jax.engine.drafting import model_drafts
from langchain_gemma_jax.engine.drafting.model_drafts import ModelDrafts
from langchain_gemma_jax.engine.drafting.past_answers import PastAnswers


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
    assert drafts.nbytes < 2.5 * 2**20
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


class Kept:
    """A keeper on no disk: what is written can be read by the next, once it is let through."""

    def __init__(self):
        self.files, self.asked, self.slow, self.full = {}, set(), False, False

    def ask(self, scope):
        self.asked.add(scope)

    def comes(self, scope):
        return self.slow and scope in self.asked

    def arrived(self, scope):
        if self.comes(scope) or scope not in self.asked or scope not in self.files:
            return None
        self.asked.discard(scope)
        return PastAnswers.of(self.files[scope])

    def write(self, scope, said):
        if self.full:
            return False
        self.files[scope] = said
        return True

    def forget(self, scope):
        self.asked.discard(scope)


def kept_drafts(kept, **options):
    drafts = ModelDrafts(SOURCES, 7, **options)
    drafts.keep_in(kept)
    return drafts


def test_answers_are_written_once_their_scope_is_idle_and_read_by_the_next_process():
    kept = Kept()
    first = kept_drafts(kept)
    answer(first, "a", [1, 2, 3], [4, 5, 6])
    now = time.monotonic()
    assert 0 < first.save_idle(now) <= model_drafts.IDLE_SECONDS
    assert kept.files == {}
    kept.full = True
    assert first.save_idle(now + 10) == model_drafts.LOOK_SECONDS, "the disk is busy: it is tried again"
    kept.full = False
    assert first.save_idle(now + 10) is None
    assert first.save_idle(now + 10) is None, "nothing new"
    again = kept_drafts(kept)
    assert again.drafter("a").propose([9, 1, 2, 3], 100)[:2] == (4, 5)
    assert again.drafter("b").propose([9, 1, 2, 3], 100) == ()
    assert again.nbytes > 0


def test_what_is_still_being_read_is_not_overwritten():
    kept = Kept()
    first = kept_drafts(kept)
    answer(first, "a", [1, 2, 3], [4, 5, 6])
    first.save_all()
    kept.slow = True
    second = kept_drafts(kept)
    answer(second, "a", [7, 8, 9], [10, 11, 12])
    second.save_all()
    assert len(PastAnswers.of(kept.files["a"]).answers) == 1, "what was there before would be lost"
    kept.slow = False
    second.save_all()
    both = PastAnswers.of(kept.files["a"])
    assert [list(each) for each in both.answers] == [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]], "the oldest first"
    assert second.drafter("a").propose([0, 1, 2, 3], 100)[:2] == (4, 5)


def test_a_scope_that_has_to_go_is_written_first_and_comes_back():
    kept = Kept()
    drafts = kept_drafts(kept, most_bytes=100_000)
    for number in range(100):
        answer(drafts, f"tenant {number}", [1, 2, number], [*range(number, number + 50)])
        assert drafts.nbytes <= 100_000
    assert len(drafts.scopes) < 50
    for number in range(100):
        draft = drafts.drafter(f"tenant {number}").propose([1, 2, number], 7)
        assert draft[:2] == (number, number + 1)
        assert drafts.nbytes <= 100_000


def test_forgotten_answers_are_not_written():
    """Other weights gave these answers."""
    kept = Kept()
    drafts = kept_drafts(kept)
    answer(drafts, "a", [1, 2, 3], [4, 5, 6])
    drafts.forget()
    drafts.save_all()
    assert kept.files == {}
