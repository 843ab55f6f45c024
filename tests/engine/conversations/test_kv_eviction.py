"""The order in which things are given up when the bytes run short."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from langchain_gemma_jax.engine.base.pages import PageSizes, Paging
from langchain_gemma_jax.engine.conversations.kv_eviction import Drop, EvictionPolicy, ForgetTurn, Shrink, next_to_go
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.errors import InputError

PAGING = Paging(10, 11, slack=0)  # behind a multiple of ten tokens, the window is in one page
GLOBAL = Paging(10, None)
SIZES = PageSizes(10, 1)  # so a token is a byte, and a window is one more
EVERYTHING = 10**9
_numbers = itertools.count()


def conversation(ids, scope="", *, system=0, turns=(), leased=False, window=True, begins=None):
    """A resident of these ids, whose pages are its own, but for those of the conversation that it begins like."""
    keys = token_keys(ids)
    made = Resident(scope, 10, keys, system=system, turns=list(turns), leased=leased)
    shared = begins.whole[: begins_alike(begins, made) // 10] if begins else []
    made.whole = [*shared, *(next(_numbers) for _ in range(PAGING.count(len(keys)) - len(shared)))]
    if window:
        theirs = begins.local if begins else {}
        wanted = {*PAGING.local(len(keys))}.union(*map(PAGING.local_of_turn, turns))
        made.local = {
            page: theirs[page] if page < len(shared) and page in theirs else next(_numbers) for page in sorted(wanted)
        }
    return made


def begins_alike(one, other):
    pairs = zip(one.keys, other.keys, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one.keys), len(other.keys)))


def carry_out(index, action):
    """Carry out an action, as ``KvHoldings`` does it."""
    one = action.resident
    assert not one.leased
    match action:
        case Drop():
            index.remove(one)
        case ForgetTurn():
            index.forget_turn(one, action.turn)
        case Shrink():
            index.truncate(one, action.keep)
            del one.whole[index.paging.count(action.keep) :]
    one.local = {page: one.local[page] for page in sorted(index.wanted(one) & one.local.keys())} if one in index else {}


def free(needed, *residents, paging=PAGING, asking=None, asked=0, budget=EVERYTHING, **policy):
    """Return the actions that free this many bytes, of residents that were used in this order."""
    index, done = PrefixIndex(paging, SIZES), []
    for one in residents:
        index.add(one)
    before = index.nbytes()
    while index.nbytes() > before - needed:
        if (action := next_to_go(index, EvictionPolicy(budget, **policy), asking, asked)) is None:
            return done
        done.append(action)
        carry_out(index, action)
    return done


def test_the_least_recently_used_go_first_and_no_more_than_needed():
    def some():
        return [conversation([number] * 150) for number in range(3)]

    a, b, c = some()
    assert free(1, a, b, c) == [Drop(a)]
    a, b, c = some()
    assert free(151, a, b, c) == [Drop(a)]
    a, b, c = some()
    assert free(152, a, b, c) == [Drop(a), Drop(b)]
    assert free(0, a, b, c) == []


def test_use_decides_not_the_order_of_arrival():
    index = PrefixIndex(PAGING, SIZES)
    first, second = conversation([1] * 150), conversation([2] * 150)
    for one in (first, second):
        index.add(one)
    index.touch(first)
    assert next_to_go(index, EvictionPolicy(1000)) == Drop(second)


def test_what_a_running_request_owns_is_never_touched():
    running = conversation(range(500), leased=True, system=100, turns=[100, 200, 300, 400])
    idle = conversation([7] * 150)
    assert free(EVERYTHING, running, idle, max_snapshots=0) == [Drop(idle)]
    assert free(EVERYTHING, running, budget=1, scope_share=0.0) == []


# Turns


def test_the_oldest_turns_beyond_the_most_go_before_any_conversation():
    def go(needed, **policy):
        old, new = conversation([1] * 400), conversation(range(400), turns=[100, 200, 300])
        names = {old: "old", new: "new"}
        return [(type(each), names[each.resident]) for each in free(needed, old, new, **policy)]

    forget = (ForgetTurn, "new")
    assert go(1, max_snapshots=1) == [forget]
    assert go(2, max_snapshots=1) == [forget, forget]
    assert go(3, max_snapshots=1) == [forget, forget, (Drop, "old")]
    assert go(1) == [(Drop, "old")]


def test_the_turn_of_a_system_prompt_is_never_too_many():
    held = conversation(range(400), system=100, turns=[100, 200, 300])
    assert free(2, held, max_snapshots=0) == [ForgetTurn(held, 200), ForgetTurn(held, 300)]


def test_what_another_has_too_is_freed_by_the_last_that_lets_go():
    a = conversation(range(400), turns=[100])
    b = conversation([*range(100), *[1] * 200], turns=[100], begins=a)
    assert free(302, a, b) == [Drop(a), Drop(b)], "the first 100 tokens, and the window before them, are still there"
    a = conversation(range(400), turns=[100])
    b = conversation([*range(100), *[1] * 200], turns=[100], begins=a)
    assert free(301, a, b) == [Drop(a)]


# System prompts


def test_a_conversation_is_cut_to_its_system_prompt():
    held = conversation(range(950), system=100, turns=[100, 500])
    assert free(852, held) == [Shrink(held, 100)]
    assert (list(held.keys), held.turns, len(held.whole), list(held.local)) == (list(range(100)), [100], 10, [9])


def test_without_local_layers_no_window_is_needed_for_that():
    held = conversation(range(950), system=100, window=False)
    assert free(1, held, paging=GLOBAL) == [Shrink(held, 100)]


def test_a_system_prompt_whose_window_is_not_kept_cannot_be_kept():
    held = conversation(range(950), system=100, turns=[500])
    assert free(1, held) == [Drop(held)]


def test_a_system_prompt_that_another_holds_is_not_kept_twice():
    a, b = (conversation([*range(100), *[n] * 850], system=100, turns=[100]) for n in (1, 2))
    assert free(953, a, b) == [Drop(a), Shrink(b, 100)]


@pytest.mark.parametrize(
    "other",
    [
        conversation([*range(99), 7, *[1] * 850], system=100, turns=[100]),
        conversation([*range(100), *[1] * 850], "another", system=100, turns=[100]),
        conversation([*range(100), *[1] * 850], system=100, turns=[500]),  # its window is not kept
        conversation([*range(100), *[1] * 850], system=0, turns=[100]),  # and would not keep it
        conversation([*range(100), *[1] * 850], system=200, turns=[100, 200]),  # and might keep the longer one only
    ],
    ids=["other ids", "other scope", "forgotten", "unknown", "longer"],
)
def test_another_holds_a_system_prompt_only_if_it_could_be_continued_there(other):
    held = conversation(range(950), system=100, turns=[100])
    assert isinstance(free(1, held, other)[0], Shrink)


def test_a_running_request_may_be_the_other_that_holds_it():
    running = conversation([*range(100), *[1] * 850], system=100, turns=[100], leased=True)
    held = conversation(range(950), system=100, turns=[100])
    assert free(1, held, running) == [Drop(held)]


def test_system_prompts_outlast_conversations_and_go_least_recently_used_first():
    stems = [conversation([n] * 100, system=100) for n in range(2)]
    chat = conversation(range(500))
    assert free(502, *stems, chat) == [Drop(chat), Drop(stems[0])]


def test_system_prompts_beyond_their_share_are_no_better_than_conversations():
    stems = [conversation([n] * 100, system=100) for n in range(5)]
    chat = conversation(range(500))
    actions = free(EVERYTHING, *stems, chat, budget=510, stem_share=0.4)
    assert [action.resident for action in actions] == [*stems[:3], chat, *stems[3:]]
    stem, chat = conversation([1] * 100, system=100), conversation(range(500))
    assert free(1, stem, chat, budget=500, stem_share=0.0) == [Drop(chat)], "the last used one is kept in any case"


# Scopes


def test_a_scope_beyond_its_share_pays_first_and_no_more_than_the_excess():
    theirs = [conversation([n] * 100, "small") for n in range(2)]
    greedy = [conversation([n] * 100, "large") for n in range(6)]
    actions = free(303, *theirs, *greedy, budget=808, scope_share=0.5)
    assert [action.resident for action in actions] == [greedy[0], greedy[1], theirs[0]]


def test_a_scope_is_judged_with_what_it_asks_for():
    def go(**asking):
        others = [conversation([n] * 100, "others") for n in range(4)]
        mine = [conversation([n] * 100, "mine") for n in range(4)]
        return [action.resident.scope for action in free(202, *others, *mine, budget=808, scope_share=0.5, **asking)]

    assert go() == ["others"] * 2
    assert go(asking="mine", asked=200) == ["mine"] * 2


def test_even_the_system_prompts_of_a_greedy_scope_go_before_others():
    stem = conversation(range(300), "large", system=300)
    theirs = conversation([1] * 100, "small")
    assert free(1, theirs, stem, budget=400, scope_share=0.5) == [Drop(stem)]


def test_a_whole_share_means_that_scopes_do_not_count():
    old, new = conversation([1] * 100, "a"), conversation([1] * 100, "b")
    assert free(1, old, new, budget=202) == [Drop(old)]


@pytest.mark.parametrize(
    "wrong", [{"scope_share": 1.1}, {"stem_share": -0.1}, {"max_snapshots": -1}, {"scope_share": float("nan")}]
)
def test_a_policy_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError):
        EvictionPolicy(100, **wrong)


# The whole


def any_conversation(rng, others):
    length = rng.randint(1, 300)
    begins = rng.choice([None, *others]) if others else None
    ids = [*(begins.keys[: rng.randint(0, len(begins.keys))] if begins else ()), *[rng.randint(0, 1)] * length][:length]
    scope = begins.scope if begins else rng.choice("ab")  # what is shared is shared within a scope
    turns = sorted(rng.sample(range(1, length + 1), min(length, rng.randint(0, 4))))
    system = rng.choice([0, length, *turns])
    return conversation(ids, scope, system=system, turns=turns, leased=rng.random() < 0.3, begins=begins)


def test_all_that_is_idle_goes_at_last_and_no_conversation_twice():
    for seed in range(200):
        rng, residents = random.Random(seed), []
        for _ in range(rng.randint(1, 6)):
            residents.append(any_conversation(rng, residents))
        needed, budget = rng.randint(0, 2000), rng.choice((100, 1000))
        paging, share = rng.choice((PAGING, GLOBAL)), rng.choice((0.0, 0.5, 1.0))
        index = PrefixIndex(paging, SIZES)
        for one in residents:
            index.add(one)
        before = index.nbytes()
        policy = EvictionPolicy(budget, scope_share=share, stem_share=share, max_snapshots=rng.randint(0, 2))
        done = []
        while index.nbytes() > before - needed and (action := next_to_go(index, policy)) is not None:
            assert len(done) < 100
            done.append(action)
            carry_out(index, action)
        assert before - index.nbytes() >= needed or all(one.leased for one in index.residents)
        assert all(one in index for one in residents if one.leased)
        assert all(paging.reach(one.local, len(one.keys)) == len(one.keys) for one in index.residents)
        times = Counter((type(action), id(action.resident)) for action in done if not isinstance(action, ForgetTurn))
        assert set(times.values()) <= {1}, "none is cut or dropped twice"
