"""A request drafts from the source that pays, stops when none does, and tries again."""

from __future__ import annotations

from itertools import pairwise

import pytest

from langchain_gemma_jax.engine.drafting.drafter import DraftCount, Drafter
from langchain_gemma_jax.engine.drafting.proposal import Proposal
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts
from langchain_gemma_jax.errors import InputError


class Always:
    """A source with the same odds for whatever it proposes."""

    def __init__(self, odds=0.9, first=1, most=99):
        self.odds, self.first, self.most, self.asked = odds, first, most, 0

    def propose(self, context, most):
        self.asked += 1
        count = min(most, self.most)
        return Proposal(tuple(range(self.first, self.first + count)), (self.odds,) * count)


def costs_of(each, rows=range(1, 9)):
    costs = RowCosts()
    for count in rows:
        for _ in range(RowCosts.ENOUGH):
            costs.note(count, 1.0 + each * (count - 1))
    return costs


def drafter(*, each=0.1, most=7, trust=None, **sources):
    return Drafter(sources or {"a": Always()}, most, costs_of(each), trust)


def run(made, tokens, *, right, start=0):
    """Generate; each draft is right, or all of it is wrong. Return the drafts by where they were."""
    at, found = start, {}
    while at < start + tokens:
        draft = made.propose(range(at), 100)
        accepted = len(draft) * right
        if draft:
            found[at] = draft
            made.record(len(draft), accepted)
        at += accepted + 1
    return found


def test_what_is_right_is_drafted_for_ever():
    made = drafter()
    found = run(made, 2000, right=True)
    assert set(map(len, found.values())) == {7}
    assert made.accepted == made.drafted == 7 * len(found)


@pytest.mark.parametrize("odds", [0.5, 0.9, 0.99])
def test_what_is_never_right_soon_stops_and_is_tried_ever_more_rarely(odds):
    found = run(drafter(a=Always(odds)), 2000, right=False)
    first = [at for at in found if at < 40]
    trials = [at for at in found if at >= 40]
    assert len(first) < 15
    assert sum(len(found[at]) for at in first) < 40
    assert all(len(found[at]) <= Drafter.TRIAL for at in trials)
    assert 3 <= len(trials) <= 6
    gaps = [later - at for at, later in pairwise(trials)]
    assert all(later > 1.9 * gap for gap, later in pairwise(gaps))


def test_a_trial_that_is_right_begins_anew():
    made = drafter()
    wrong = run(made, 300, right=False)
    found = run(made, 1000, right=True, start=300)
    first, *others = found
    assert first < 2.5 * max(wrong)
    assert len(found[first]) == Drafter.TRIAL
    assert {len(found[at]) for at in others} == {7}


def test_where_rows_are_dear_nothing_is_drafted_but_trials():
    found = run(drafter(each=1.0), 1000, right=True)
    assert len(found) <= 15
    assert all(len(draft) <= Drafter.TRIAL for draft in found.values())
    cheap = run(drafter(each=0.0), 1000, right=True)
    assert sum(map(len, cheap.values())) > 800


def test_a_faint_hope_is_checked_while_it_pays_and_never_tried_where_it_does_not():
    assert run(drafter(a=Always(1 / 3), each=0.1), 1000, right=True) != {}
    assert run(drafter(a=Always(1 / 3), each=0.5), 1000, right=True) == {}
    assert run(drafter(a=Always(3 / 5), each=0.9), 1000, right=True) != {}, "three tokens that match deserve a trial"


def test_dearer_rows_mean_fewer_tokens():
    lengths = [len(drafter(each=each / 10, a=Always(0.7)).propose([0], 100)) for each in range(12)]
    assert lengths == sorted(lengths, reverse=True)
    assert (lengths[0], lengths[-1]) == (7, 0)


def test_the_better_source_is_taken_and_of_equal_ones_the_first():
    made = drafter(a=Always(0.5, first=10), b=Always(0.9, first=20))
    assert made.propose([0], 100)[0] == 20
    assert made.record(7, 7) == "b"
    assert drafter(a=Always(0.6, first=10), b=Always(0.6, first=20)).propose([0], 100)[0] == 10
    short = drafter(a=Always(0.9, first=10, most=1), b=Always(0.9, first=20))
    assert short.propose([0], 100)[0] == 20, "as sure, and longer"


def test_a_source_that_fills_the_draft_is_the_last_that_is_asked():
    second = Always()
    drafter(a=Always(0.99), b=second).propose([0], 100)
    assert second.asked == 0


def test_a_source_that_was_wrong_gives_way_to_another():
    wrong, right = Always(0.9, first=10), Always(0.7, first=20)
    made = drafter(a=wrong, b=right)
    taken = []
    for length in range(20):
        draft = made.propose([0] * (10 + length), 100)
        taken.append(draft[0])
        made.record(len(draft), len(draft) if draft[0] == 20 else 0)
    assert taken[0] == 10
    assert set(taken[5:]) == {20}
    assert set(made.counts) == {"a", "b"}
    assert made.counts["a"].accepted == 0
    assert made.trust["a"] < 0.5 < made.trust["b"]


def test_trust_of_an_earlier_request_counts():
    assert drafter().propose([0], 100)
    assert drafter(trust={"a": 0.05}).propose([0], 100) == ()


def test_a_draft_fits_the_room_and_the_grammar():
    made = drafter()
    for room in (-1, 0):
        assert made.propose([0], room) == ()
    assert made.propose([0], 3) == (1, 2, 3)
    assert made.propose([0], 100, lambda tokens: tokens[:2]) == (1, 2)
    assert made.propose([0], 100, lambda tokens: ()) == ()
    assert drafter(most=0).propose([0], 100) == ()


def test_drafts_are_counted_by_their_source():
    made = drafter()
    for _ in range(2):
        assert len(made.propose([0], 100)) == 7
        assert made.record(7, 6, 4) == "a"
    assert made.counts == {"a": DraftCount(14, 8)}
    assert (made.drafted, made.accepted) == (14, 8)


@pytest.mark.parametrize(("proposed", "accepted"), [(6, 1), (7, 8), (7, -1)])
def test_a_result_of_another_draft_is_refused(proposed, accepted):
    made = drafter()
    with pytest.raises(InputError, match=r"expected the result of the last draft, .* and none is being checked"):
        made.record(proposed, accepted)
    made.propose([0], 100)
    with pytest.raises(InputError, match=r"expected the result of the last draft, .* one of 7"):
        made.record(proposed, accepted)


def test_passes_that_were_measured_change_the_costs_of_all_requests_of_the_model():
    costs = RowCosts()
    one, other = (Drafter({"a": Always()}, 7, costs) for _ in range(2))
    assert len(other.propose([0], 100)) > 1
    for _ in range(RowCosts.ENOUGH):
        one.took(1, 1.0)
        one.took(8, 80.0)
    assert other.propose([0], 100) == ()
