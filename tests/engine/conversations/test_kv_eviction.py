"""What is given up first when the bytes run short."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_gemma_jax.engine.conversations.kv_eviction import Drop, DropSnapshot, EvictionPolicy, Shrink, to_free
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, Rings
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot
from langchain_gemma_jax.errors import InputError

RINGS = Rings(48, 16)
EVERYTHING = 10**9


def capacity_bytes(length):
    return 100 * max(1, -(-length // 100))  # a ladder of hundreds, a byte a token


def conversation(ids, scope="", *, system=0, at=(), leased=False, nbytes=None):
    """A resident of these ids, with snapshots of ten bytes at some lengths."""
    ids = token_keys(ids)
    snapshots = [one if isinstance(one, Snapshot) else Snapshot(one, one, 10, object()) for one in at]
    nbytes = capacity_bytes(len(ids)) if nbytes is None else nbytes
    return Resident(scope, 10_000, nbytes, None, ids, system=system, snapshots=snapshots, leased=leased)


def free(needed, *residents, rings=RINGS, asking=None, asked=0, budget=EVERYTHING, **policy):
    """The plan for residents that were used in this order."""
    index = PrefixIndex(rings)
    for one in residents:
        index.add(one)
    policy = EvictionPolicy(budget, **policy)
    return to_free(index, needed, policy=policy, capacity_bytes=capacity_bytes, asking=asking, asked=asked)


def test_the_least_recently_used_go_first_and_no_more_than_needed():
    a, b, c = (conversation([n] * 150) for n in range(3))
    assert free(1, a, b, c) == [Drop(a, 200)]
    assert free(200, a, b, c) == [Drop(a, 200)]
    assert free(201, a, b, c) == [Drop(a, 200), Drop(b, 200)]
    assert free(0, a, b, c) == []


def test_use_decides_not_the_order_of_arrival():
    index = PrefixIndex(RINGS)
    first, second = conversation([1] * 150), conversation([2] * 150)
    for one in (first, second):
        index.add(one)
    index.touch(first)
    assert to_free(index, 1, policy=EvictionPolicy(1000), capacity_bytes=capacity_bytes) == [Drop(second, 200)]


def test_what_a_running_request_owns_is_never_touched():
    running = conversation(range(500), leased=True, system=100, at=[100, 200, 300, 400])
    idle = conversation([7] * 150)
    assert free(EVERYTHING, running, idle, max_snapshots=0) == [Drop(idle, 200)]
    assert free(EVERYTHING, running, budget=1, scope_share=0.0) == []


def test_what_can_be_freed_is_given_even_if_it_is_not_enough():
    a, b = conversation([1] * 150), conversation([2] * 150)
    assert sum(action.freed for action in free(EVERYTHING, a, b)) == 400


# Snapshots


def test_the_oldest_snapshots_beyond_the_most_go_before_any_conversation():
    old, new = conversation([1] * 400), conversation(range(400), at=[100, 200, 300])
    first, second, _ = new.snapshots
    assert free(10, old, new, max_snapshots=1) == [DropSnapshot(new, first, 10)]
    assert free(11, old, new, max_snapshots=1) == [DropSnapshot(new, first, 10), DropSnapshot(new, second, 10)]
    assert free(21, old, new, max_snapshots=1)[2:] == [Drop(old, 400)]
    assert free(10, old, new) == [Drop(old, 400)]


def test_the_snapshot_of_a_system_prompt_is_never_too_many():
    held = conversation(range(400), system=100, at=[100, 200, 300])
    actions = free(20, held, max_snapshots=0)
    assert [action.snapshot.end for action in actions] == [200, 300]


def test_a_shared_snapshot_is_freed_by_the_last_that_lets_go():
    shared = Snapshot(100, 100, 10, object())
    a, b = conversation(range(400), at=[shared]), conversation(range(300), at=[shared])
    assert free(EVERYTHING, a, b) == [Drop(a, 400), Drop(b, 310)]
    assert free(10, a, b, max_snapshots=0) == [DropSnapshot(a, shared, 0), DropSnapshot(b, shared, 10)]
    running = conversation(range(300), at=[shared], leased=True)
    assert free(EVERYTHING, a, running) == [Drop(a, 400)]


def test_what_was_let_go_is_not_counted_again_with_its_resident():
    held = conversation(range(400), at=[100, 200])
    first, second = held.snapshots
    actions = free(EVERYTHING, held, max_snapshots=0)
    assert actions == [DropSnapshot(held, first, 10), DropSnapshot(held, second, 10), Drop(held, 400)]


# System prompts


def test_a_conversation_is_cut_to_its_system_prompt():
    held = conversation(range(950), system=100, at=[100, 500])
    system, _ = held.snapshots
    assert free(1, held) == [Shrink(held, 100, system, 910)]


def test_what_a_cut_leaves_is_what_the_index_leaves():
    index = PrefixIndex(RINGS)
    index.add(held := conversation(range(950), system=100, at=[60, 100, 110, 500]))
    (cut,) = to_free(index, 1, policy=EvictionPolicy(EVERYTHING), capacity_bytes=capacity_bytes)
    before = index.nbytes()
    index.truncate(held, cut.keep, cut.snapshot)
    held.nbytes = capacity_bytes(cut.keep)
    assert (list(held.keys), before - index.nbytes()) == (list(range(100)), cut.freed)


def test_without_local_layers_no_snapshot_is_needed_for_that():
    held = conversation(range(950), system=100)
    assert free(1, held, rings=Rings(None)) == [Shrink(held, 100, None, 900)]


def test_a_system_prompt_that_the_rings_forgot_cannot_be_kept():
    held = conversation(range(950), system=100, at=[500])
    assert free(1, held) == [Drop(held, 1010)]


def test_a_system_prompt_that_another_holds_is_not_kept_twice():
    a, b = (conversation([*range(100), *[n] * 850], system=100, at=[100]) for n in (1, 2))
    assert free(1, a, b) == [Drop(a, 1010)]
    assert free(1011, a, b) == [Drop(a, 1010), Shrink(b, 100, b.snapshots[0], 900)]


@pytest.mark.parametrize(
    "other",
    [
        conversation([*range(99), 7, *[1] * 850], system=100, at=[100]),
        conversation([*range(100), *[1] * 850], "another", system=100, at=[100]),
        conversation([*range(100), *[1] * 850], system=100, at=[500]),  # its rings have forgotten it
        conversation([*range(100), *[1] * 850], system=0, at=[100]),  # and would not keep it
        conversation([*range(100), *[1] * 850], system=200, at=[100, 200]),  # and might keep the longer one only
    ],
    ids=["other ids", "other scope", "forgotten", "unknown", "longer"],
)
def test_another_holds_a_system_prompt_only_if_it_could_be_continued_there(other):
    held = conversation(range(950), system=100, at=[100])
    assert isinstance(free(1, held, other)[0], Shrink)


def test_a_running_request_may_be_the_other_that_holds_it():
    running = conversation([*range(100), *[1] * 850], system=100, at=[100], leased=True)
    held = conversation(range(950), system=100, at=[100])
    assert free(1, held, running) == [Drop(held, 1010)]


def test_system_prompts_outlast_conversations_and_go_least_recently_used_first():
    stems = [conversation([n] * 100, system=100) for n in range(2)]
    chat = conversation(range(500))
    assert free(1, *stems, chat) == [Drop(chat, 500)]
    assert free(501, *stems, chat) == [Drop(chat, 500), Drop(stems[0], 100)]


def test_a_conversation_in_as_few_bytes_as_its_system_prompt_counts_as_one():
    short = conversation(range(120), system=110, at=[110])
    assert free(1, short, later := conversation([5] * 500)) == [Drop(later, 500)]
    assert free(501, short, later) == [Drop(later, 500), Drop(short, 210)]


def test_a_resident_is_not_cut_first_and_dropped_then():
    held = conversation(range(950), system=100, at=[100, 500])
    assert free(911, held) == [Drop(held, 1020)]
    other = conversation([3] * 500)
    assert free(EVERYTHING, held, other) == [Drop(other, 500), Drop(held, 1020)]


def test_what_a_cut_let_go_is_not_counted_again_when_the_rest_goes():
    shared = Snapshot(500, 500, 10, object())
    running = conversation(range(600), at=[shared], leased=True)
    held = conversation(range(950), system=100, at=[100, shared])
    assert free(EVERYTHING, held, running) == [Drop(held, 1010)]


def test_system_prompts_beyond_their_share_are_no_better_than_conversations():
    stems = [conversation([n] * 100, system=100) for n in range(5)]
    chat = conversation(range(500))
    actions = free(EVERYTHING, *stems, chat, budget=500, stem_share=0.4)
    assert [action.resident for action in actions] == [*stems[:3], chat, *stems[3:]]
    only = free(1, stems[0], chat, budget=500, stem_share=0.0)
    assert only == [Drop(chat, 500)]


# Scopes


def test_a_scope_beyond_its_share_pays_first_and_no_more_than_the_excess():
    theirs = [conversation([n] * 100, "small") for n in range(2)]
    greedy = [conversation([n] * 100, "large") for n in range(6)]
    actions = free(300, *theirs, *greedy, budget=800, scope_share=0.5)
    assert [action.resident for action in actions] == [greedy[0], greedy[1], theirs[0]]


def test_a_scope_is_judged_with_what_it_asks_for():
    others = [conversation([n] * 100, "others") for n in range(4)]
    mine = [conversation([n] * 100, "mine") for n in range(4)]
    same = {"budget": 800, "scope_share": 0.5}
    assert free(200, *others, *mine, **same) == [Drop(others[0], 100), Drop(others[1], 100)]
    assert free(200, *others, *mine, asking="mine", asked=200, **same) == [Drop(mine[0], 100), Drop(mine[1], 100)]


def test_even_the_system_prompts_of_a_greedy_scope_go_before_others():
    stem = conversation(range(300), "large", system=300)
    theirs = conversation([1] * 100, "small")
    assert free(1, theirs, stem, budget=400, scope_share=0.5) == [Drop(stem, 300)]


def test_a_whole_share_means_that_scopes_do_not_count():
    old, new = conversation([1] * 100, "a"), conversation([1] * 100, "b")
    assert free(1, old, new, budget=200) == [Drop(old, 100)]


@pytest.mark.parametrize(
    "wrong", [{"scope_share": 1.1}, {"stem_share": -0.1}, {"max_snapshots": -1}, {"scope_share": float("nan")}]
)
def test_a_policy_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError):
        EvictionPolicy(100, **wrong)


# The whole

SHARED = [Snapshot(end, end, 10, object()) for end in (10, 20, 30)]  # all ids are alike, so anybody may share them


@st.composite
def any_conversation(draw):
    length = draw(st.integers(1, 300))
    own = [Snapshot(end, end, 10, object()) for end in draw(st.sets(st.integers(31, 300), max_size=3)) if end <= length]
    shared = [one for one in SHARED if one.end <= length and draw(st.booleans())]
    return conversation(
        [0] * length,
        draw(st.sampled_from("ab")),
        system=draw(st.integers(0, length)),
        at=shared + sorted(own, key=lambda one: one.end),
        leased=draw(st.booleans()),
    )


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(
    st.lists(any_conversation(), max_size=6),
    st.integers(0, 2000),
    st.integers(0, 2),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([RINGS, Rings(None)]),
)
def test_a_plan_frees_what_it_says(residents, needed, max_snapshots, share, rings):
    for one in residents:  # what is shared is shared within a scope only
        if one.scope == "b":
            one.snapshots = [s for s in one.snapshots if s not in SHARED]
    index = PrefixIndex(rings)
    for one in residents:
        index.add(one)
    policy = EvictionPolicy(1000, scope_share=share, stem_share=share, max_snapshots=max_snapshots)
    actions = to_free(index, needed, policy=policy, capacity_bytes=capacity_bytes)

    total = index.nbytes()
    for action in actions:
        assert not action.resident.leased
        match action:
            case Drop(one):
                index.remove(one)
            case DropSnapshot(one, snapshot):
                index.drop_snapshot(one, snapshot)
            case Shrink(one, keep, snapshot):
                index.truncate(one, keep, snapshot)
                one.nbytes = capacity_bytes(keep)
    freed = sum(action.freed for action in actions)
    assert total - index.nbytes() == freed
    assert freed >= needed or all(one.leased for one in index.residents)
    done = Counter(id(action.resident) for action in actions if not isinstance(action, DropSnapshot))
    assert all(count == 1 for count in done.values())
