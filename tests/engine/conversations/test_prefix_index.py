"""The part of a prompt that residents have: what is resident, against a plain loop over lengths and pages."""

from __future__ import annotations

import copy
import itertools
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_gemma_jax.engine.base.pages import PageSizes, Paging
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, Reuse, common_prefix
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident
from tests.counted import lines

SLOTS, WINDOW = 8, 32
GLOBAL = Paging(SLOTS, None)
LOCAL = Paging(SLOTS, WINDOW, slack=0)
SIZES = PageSizes(100, 7)
_numbers = itertools.count()


def resident(ids, scope="", *, paging=GLOBAL, local=None, **options):
    """A resident with pages of its own: all global ones, and the local ones that it needs, or those in ``local``."""
    keys = token_keys(ids)
    made = Resident(scope, paging.slots, keys, **options)
    made.whole = [next(_numbers) for _ in range(paging.count(len(keys)))]
    wanted = {*paging.local(len(keys))}.union(*map(paging.local_of_turn, made.turns)) if local is None else local
    made.local = {page: next(_numbers) for page in wanted}
    return made


def index_of(*residents, paging=GLOBAL):
    index = PrefixIndex(paging, SIZES)
    for one in residents:
        index.add(one)
    return index


# What matches


def test_a_conversation_that_goes_on_is_continued_where_it_is():
    held = resident(range(100))
    assert index_of(held).plan(range(150), "") == Reuse(held, 100, 100, in_place=True)


def test_a_fork_copies_what_is_common_and_leaves_the_source_as_it_was():
    held = resident(range(100))
    reuse = index_of(held).plan([*range(60), 7, 7, 7], "")
    assert reuse == Reuse(held, 60, 60, in_place=False)
    assert list(held.keys) == list(range(100))


@pytest.mark.parametrize(("cut", "in_place"), [(1, True), (16, True), (17, False)])
def test_a_tail_no_longer_than_the_slack_is_cut_off_in_place(cut, in_place):
    reuse = index_of(resident(range(100))).plan([*range(100 - cut), 7, 7], "")
    assert (reuse.length, reuse.in_place) == (100 - cut, in_place)


def test_the_last_token_of_a_prompt_is_always_read():
    held = resident(range(100))
    assert index_of(held).plan(range(100), "") == Reuse(held, 99, 99, in_place=True)
    assert index_of(held).plan(range(50), "").length == 49


@pytest.mark.parametrize("prompt", [[], [0], [5, 6, 7]])
def test_nothing_in_common_is_a_cold_start(prompt):
    assert index_of(resident(range(100))).plan(prompt, "") == Reuse()


def test_the_longest_prefix_wins_over_a_shorter_one_that_could_be_continued_in_place():
    short, long = resident(range(50)), resident(range(90))
    assert index_of(long, short).plan([*range(60), 7, 7], "") == Reuse(long, 60, 60, in_place=False)


def test_of_equally_long_prefixes_the_one_to_continue_in_place_wins_however_old():
    linear, branch = resident(range(50)), resident([*range(50), *[9] * 50])
    assert index_of(linear, branch).plan(range(60), "").source is linear


def test_of_equal_residents_the_last_used_is_continued():
    first, second = resident(range(50)), resident(range(50))
    index = index_of(first, second)
    assert index.plan(range(60), "").source is second
    index.touch(first)
    assert index.plan(range(60), "").source is first


def test_a_leased_resident_is_copied_and_never_continued():
    running, idle = resident(range(50), leased=True), resident(range(50))
    assert index_of(running).plan(range(60), "") == Reuse(running, 50, 50, in_place=False)
    assert index_of(idle, running).plan(range(60), "").source is idle


def test_planning_changes_nothing():
    held = resident(range(100), paging=LOCAL, turns=[40])
    index = index_of(held, paging=LOCAL)
    before = copy.deepcopy(vars(held))
    assert index.plan([*range(99), 7, 7], "").in_place
    assert vars(held) == before


def test_scopes_never_match_each_other():
    generator = random.Random(7)
    for pair in range(200):
        prompt = [generator.randrange(2**31) for _ in range(generator.randrange(2, 200))]
        mine, theirs = f"tenant {pair}", f"tenant {pair} "  # alike, but not the same
        index = index_of(resident(prompt, mine), resident([prompt[0] ^ 1, *prompt[1:]], theirs))
        assert index.plan(prompt, mine).length == len(prompt) - 1
        assert index.plan(prompt, theirs) == Reuse()
        assert index.plan(prompt, "") == Reuse()


@given(st.lists(st.integers(0, 2), max_size=40), st.lists(st.integers(0, 2), max_size=40), st.integers(0, 40))
def test_the_common_prefix_is_that_of_a_loop(prompt, held, limit):
    limit = min(limit, len(prompt), len(held))
    expected = next((i for i in range(limit) if prompt[i] != held[i]), limit)
    assert common_prefix(token_keys(prompt).tobytes(), token_keys(held), limit) == expected


@pytest.mark.parametrize("at", [0, 1, 4095, 4096, 31_998, 31_999])
@pytest.mark.parametrize("bit", [1, 1 << 8, 1 << 30])
def test_one_different_bit_ends_the_match_there(at, bit):
    prompt = token_keys(range(32_000))
    held = token_keys(prompt[:])
    held[at] ^= bit
    assert common_prefix(prompt.tobytes(), held, 32_000) == at


def test_matching_is_not_done_in_python():
    prompt = token_keys(range(32_768))
    index = index_of(*(resident([*prompt[: 32_000 - n], 7]) for n in range(64)))
    assert index.plan(prompt, "").length == 32_000
    assert lines(lambda: index.plan(prompt, "")) < 10_000


# Windows


def test_without_local_layers_every_length_can_be_gone_back_to():
    index = index_of(resident(range(500)))
    assert [index.plan([*range(at), -1], "").length for at in range(1, 501)] == list(range(1, 501))


@pytest.mark.parametrize(
    ("pages", "same", "length"),
    [
        ([8, 9, 10, 11, 12], 100, 100),
        ([8, 9, 10, 11, 12], 96, 96),
        ([8, 9, 10, 11, 12], 95, 95),
        ([8, 9, 10, 11, 12], 94, 0),  # its window begins in page 7
        ([0, 1, 8, 9, 10, 11, 12], 94, 16),  # what can be continued behind two pages that are kept
        ([0, 1, 8, 9, 10, 11, 12], 9, 9),
        ([7, 8, 9, 11, 12], 100, 0),
        ([5, 6, 7, 8, 9, 11, 12], 100, 80),  # up to the page that is missing
    ],
)
def test_a_beginning_is_reused_as_far_as_the_window_before_it_is_kept(pages, same, length):
    held = resident(range(100), paging=LOCAL, local=pages)
    reuse = index_of(held, paging=LOCAL).plan([*range(same), -1, -1], "")
    assert (reuse.length, reuse.common, bool(reuse.lost)) == (length, same, length < same)


def test_an_earlier_turn_is_continued_and_the_reason_for_what_is_lost_is_given():
    held = resident(range(1000), paging=LOCAL, turns=[200, 400])
    reuse = index_of(held, paging=LOCAL).plan([*range(500), 7, 7], "")
    assert (reuse.source, reuse.length, reuse.common, reuse.in_place) == (held, 400, 500, False)
    assert reuse.lost == (
        "500 tokens match, but the local layers' window of 32 tokens before them is not kept any more; the nearest"
        " state kept is at 400, so 100 tokens are read again"
    )


def test_without_an_earlier_turn_the_prefix_is_lost_and_the_reason_is_given():
    reuse = index_of(resident(range(1000), paging=LOCAL), paging=LOCAL).plan([*range(500), 7, 7], "")
    assert (reuse.source, reuse.length, reuse.common) == (None, 0, 500)
    assert reuse.lost.endswith("no earlier state is kept, so 500 tokens are read again")


# Changing


def test_extending_adds_tokens_and_is_a_use():
    first, second = resident(range(10), local=[]), resident(range(10))
    index = index_of(first, second)
    index.extend(first, [10, 11])
    assert list(first.keys) == list(range(12))
    assert first.last_used > second.last_used


def test_a_resident_cannot_hold_more_than_its_pages_have_room_for():
    index = index_of(held := resident(range(10)))
    index.extend(held, range(6))
    with pytest.raises(ValueError, match=r"17 tokens do not fit .* 2 pages"):
        index.extend(held, [7])
    assert list(held.keys) == [*range(10), *range(6)]


def test_extending_by_something_that_is_no_id_changes_nothing():
    index = index_of(held := resident(range(10)))
    with pytest.raises(TypeError):
        index.extend(held, [1, "2"])
    assert list(held.keys) == list(range(10))


def test_cutting_keeps_the_turns_up_to_there_and_is_no_use():
    held = resident(range(100), paging=LOCAL, system=95, turns=[40, 86, 90])
    index = index_of(held, paging=LOCAL)
    used = held.last_used
    index.truncate(held, 88)
    assert (list(held.keys), held.system, held.turns) == (list(range(88)), 88, [40, 86, 88])
    assert held.last_used == used
    index.truncate(held, 0)
    assert (list(held.keys), held.system, held.turns) == ([], 0, [])


def test_what_the_window_before_it_is_not_kept_of_cannot_be_cut_to():
    held = resident(range(1000), paging=LOCAL, turns=[400])
    index = index_of(held, paging=LOCAL)
    for length in (500, 300, 1001):
        with pytest.raises(ValueError, match=f"1000 tokens cannot be cut to {length}"):
            index.truncate(held, length)
    assert len(held.keys) == 1000
    index.truncate(held, 400)
    assert len(held.keys) == 400


def test_turns_are_kept_by_length_and_once_each_and_decide_which_pages_are_worth_keeping():
    index = index_of(held := resident(range(0), paging=LOCAL, turns=[]), paging=LOCAL)
    index.keep_turn(held)
    assert held.turns == [], "an empty conversation has none"
    held.whole = [*range(20)]
    for count in (100, 20):
        index.extend(held, range(count))
        index.keep_turn(held)
        index.keep_turn(held)
    assert held.turns == [100, 120]
    assert index.wanted(held) == {8, 9, 10, 11, 12, 13, 14}
    index.forget_turn(held, 100)
    assert held.turns == [120]
    assert index.wanted(held) == {11, 12, 13, 14}


def test_what_is_not_in_the_index_is_not_changed():
    index = index_of(gone := resident(range(10)))
    with pytest.raises(ValueError, match="already"):
        index.add(gone)
    index.remove(gone)
    for change in (index.remove, index.touch, lambda r: index.extend(r, [1]), lambda r: index.truncate(r, 5)):
        with pytest.raises(ValueError, match="not in the index"):
            change(gone)
    assert gone not in index
    assert index.plan(range(10), "") == Reuse()


# Bytes


def test_a_page_that_several_share_counts_once():
    first = resident(range(50), "a", paging=LOCAL)
    second = resident(range(20), "a", paging=LOCAL)
    second.whole[:2], second.local[1] = first.whole[:2], first.local[3]
    other = resident(range(8), "b", paging=LOCAL)
    index = index_of(first, second, other, paging=LOCAL)
    wholes, locals_ = 7 + 1, 5 + 2
    assert index.nbytes_by_scope() == {"a": 100 * wholes + 7 * locals_, "b": 107}
    assert index.bytes_of([second]) == 3 * 107
    assert index.nbytes() == sum(index.nbytes_by_scope().values())
    for one in index.residents:
        index.remove(one)
    assert (index.nbytes_by_scope(), index.nbytes()) == ({}, 0)


# The whole, against a plain model

IDS = st.lists(st.integers(0, 1), min_size=1, max_size=60)
PAGINGS = [Paging(4, None), Paging(4, 6), Paging(4, 12)]


@st.composite
def any_resident(draw):
    ids = draw(IDS)
    return resident(
        ids,
        draw(st.sampled_from("ab")),
        paging=PAGINGS[0],
        leased=draw(st.booleans()),
        local=draw(st.sets(st.integers(0, 14))),
        turns=sorted(draw(st.sets(st.integers(1, len(ids)), max_size=3))),
    )


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.lists(any_resident(), max_size=6), IDS, st.sampled_from(PAGINGS))
def test_plans_are_those_of_a_plain_model(residents, prompt, paging):
    index = index_of(*residents, paging=paging)
    reuse = index.plan(prompt, "a")

    def usable(one, length):  # by the rule, written out
        seen = [] if paging.window is None else range(max(0, length - paging.window + 1), length)
        return all(position // paging.slots in one.local for position in seen)

    candidates, common = [], 0
    for one in residents:
        if one.scope == "a":
            same = 0
            while same < min(len(prompt) - 1, len(one.keys)) and prompt[same] == one.keys[same]:
                same += 1
            common = max(common, same)
            candidates += [
                (length, not one.leased and len(one.keys) - length <= 16)
                for length in range(1, same + 1)
                if usable(one, length)
            ]
    length, in_place = max(candidates, default=(0, False))
    assert (reuse.length, reuse.common, reuse.in_place) == (length, common, in_place)
    assert bool(reuse.lost) == (length < common)
    assert (reuse.source is None) == (length == 0)
    if reuse.in_place:
        index.truncate(reuse.source, length)
        assert list(reuse.source.keys) == prompt[:length]
        assert all(a < b <= length for a, b in pairwise([0, *reuse.source.turns]))
