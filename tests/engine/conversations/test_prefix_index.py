"""What is resident and what a prompt takes over, against a plain loop and a ring that is played through."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, Reuse, Rings, common_prefix
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot
from tests.counted import lines

GLOBAL = Rings(None)
RINGS = Rings(48, 16)  # a window of 32


def resident(ids, scope="", **options):
    return Resident(scope, options.pop("capacity", 4096), options.pop("nbytes", 100), None, token_keys(ids), **options)


def index_of(*residents, rings=GLOBAL):
    index = PrefixIndex(rings)
    for one in residents:
        index.add(one)
    return index


def shot(end, written=0, nbytes=10, handle=None):
    return Snapshot(end, max(end, written), nbytes, object() if handle is None else handle)


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
    held = resident(range(100), snapshots=[shot(40)], written=104)
    index = index_of(held, rings=RINGS)
    before = (held.last_used, list(held.keys), list(held.snapshots), held.written)
    assert index.plan([*range(90), 7, 7], "").in_place
    assert (held.last_used, list(held.keys), list(held.snapshots), held.written) == before


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
    index = index_of(*(resident([*prompt[: 32_000 - n], 7], capacity=40_000) for n in range(64)))
    assert index.plan(prompt, "").length == 32_000
    assert lines(lambda: index.plan(prompt, "")) < 10_000


# Rings


@pytest.mark.parametrize(
    ("end", "written", "length", "possible"),
    [
        (100, 100, 100, True),
        (100, 100, 84, True),
        (100, 100, 83, False),
        (100, 108, 92, True),  # eight rejected drafts
        (100, 108, 91, False),
        (48, 48, 1, True),  # nothing was ever overwritten
        (40, 49, 1, False),  # by a draft, though no valid token needed the slot
        (100, 100, 101, False),
        (40, 40, -1, False),
    ],
)
def test_rings_go_back_as_far_as_the_slack_unless_they_never_wrapped(end, written, length, possible):
    assert RINGS.restorable(end, written, length) is possible


def test_without_local_layers_every_length_can_be_gone_back_to():
    assert all(GLOBAL.restorable(5000, 5000, length) for length in range(5001))


def test_a_snapshot_gives_back_what_the_rings_forgot():
    early, late = shot(200), shot(400)
    held = resident(range(1000), snapshots=[early, late])
    reuse = index_of(held, rings=RINGS).plan([*range(500), 7, 7], "")
    assert (reuse.source, reuse.length, reuse.common, reuse.snapshot) == (held, 400, 500, late)
    assert not reuse.in_place
    assert reuse.lost == (
        "500 tokens match, but the local layers' rings (48 slots) were written up to 1,000 and go back 16 tokens at"
        " most; the nearest state kept is at 400, so 100 tokens are read again"
    )


def test_no_snapshot_is_restored_for_nothing():
    assert RINGS.reach(1000, 1000, [shot(10)], 0) == (0, None)


def test_a_snapshot_a_little_beyond_the_divergence_serves_within_the_slack():
    late = shot(400)
    held = resident(range(1000), snapshots=[late])
    reuse = index_of(held, rings=RINGS).plan([*range(390), 7, 7], "")
    assert (reuse.length, reuse.lost) == (390, "")
    assert (reuse.snapshot.end, reuse.snapshot.written, reuse.snapshot.handle) == (390, 400, late.handle)


def test_without_a_snapshot_the_prefix_is_lost_and_the_reason_is_given():
    reuse = index_of(resident(range(1000)), rings=RINGS).plan([*range(500), 7, 7], "")
    assert (reuse.source, reuse.length, reuse.common) == (None, 0, 500)
    assert reuse.lost.endswith("no earlier state is kept, so 500 tokens are read again")


def test_of_equally_long_prefixes_the_one_that_needs_no_snapshot_wins():
    plain = resident([*range(400), *[9] * 10], leased=True)
    restored = resident(range(1000), snapshots=[shot(400)])
    assert index_of(plain, restored, rings=RINGS).plan([*range(400), 7, 7], "").source is plain


def test_a_snapshot_may_be_restored_in_place_when_only_a_tail_is_lost():
    held = resident(range(100), written=120, snapshots=[shot(90)])
    reuse = index_of(held, rings=RINGS).plan([*range(90), 7, 7], "")
    assert (reuse.length, reuse.in_place, reuse.snapshot) == (90, True, held.snapshots[0])


class PlayedRing:
    """A ring of positions and tokens, and what a step from some length would find in it."""

    def __init__(self, window, slack):
        self.window, self.slack, self.size = window, slack, window + slack
        self.slots = {}

    def write(self, start, tokens):
        for position, token in enumerate(tokens, start):
            self.slots[position % self.size] = (position, token)

    def whole(self, ids, length):
        """Whether a step of one token, and one as long as the slack, from there finds all that it sees."""
        for count in (1, self.slack):
            slots = dict(self.slots)
            self.slots = dict(slots)
            self.write(length, [None] * count)
            after, self.slots = self.slots, slots
            for query in range(length, length + count):
                for key in range(max(0, query - self.window + 1), min(query, length - 1) + 1):
                    if after.get(key % self.size) != (key, ids[key]):
                        return False
        return True


@settings(max_examples=150, deadline=None)
@given(
    st.integers(2, 9),
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from(["read", "draft", "cut"]), st.integers(1, 12)), max_size=12),
)
def test_the_rule_of_the_rings_is_that_of_a_ring_that_is_played_through(window, slack, moves):
    rings, ring = Rings(window + slack, slack), PlayedRing(window, slack)
    index = index_of(held := resident([]), rings=rings)
    token = 0
    for move, most in moves:
        end, count = len(held.keys), min(most, slack) if move == "draft" else most
        if move == "cut":
            if held.written <= rings.size or held.written - (end - count) <= slack:
                index.truncate(held, max(end - count, 0))
            continue
        tokens = range(token, token := token + count)  # every token differs from all earlier ones
        ring.write(end, tokens)
        accepted = tokens[:1] if move == "draft" else tokens
        index.extend(held, accepted, written=end + count)
        for length in range(1, len(held.keys) + 1):
            possible = rings.restorable(len(held.keys), held.written, length)
            if possible:
                assert ring.whole(held.keys, length)
            elif (
                held.written - length > slack + 1
            ):  # one more than the slack still holds: the window includes the query
                assert not ring.whole(held.keys, length)


# Changing


def test_extending_says_how_far_was_written():
    index = index_of(held := resident(range(10)))
    index.extend(held, [10, 11])
    assert (list(held.keys), held.written) == (list(range(12)), 12)
    index.extend(held, [12], written=20)
    index.extend(held, [13])
    assert (len(held.keys), held.written) == (14, 20)


def test_a_resident_cannot_hold_more_than_it_has_room_for():
    index = index_of(held := resident(range(10), capacity=12))
    with pytest.raises(ValueError, match="capacity 12"):
        index.extend(held, range(3))
    assert list(held.keys) == list(range(10))


def test_extending_by_something_that_is_no_id_changes_nothing():
    index = index_of(held := resident(range(10)))
    with pytest.raises(TypeError):
        index.extend(held, [1, "2"])
    assert (list(held.keys), held.written) == (list(range(10)), 10)


def test_cutting_keeps_how_far_was_written_and_what_of_the_snapshots_still_serves():
    early, late, last = shot(40), shot(90), shot(99)
    held = resident(range(100), system=95, snapshots=[early, late, last])
    index = index_of(held, rings=RINGS)
    used = held.last_used
    index.truncate(held, 86)
    assert (list(held.keys), held.written, held.system) == (list(range(86)), 100, 86)
    assert [(s.end, s.written, s.handle) for s in held.snapshots] == [(40, 40, early.handle), (86, 90, late.handle)]
    assert held.last_used == used


def test_a_snapshot_too_far_beyond_a_cut_is_forgotten():
    held = resident(range(1000), snapshots=[shot(400), shot(420)])
    index_of(held, rings=RINGS).truncate(held, 400, held.snapshots[0])
    assert [s.end for s in held.snapshots] == [400]
    assert held.written == 400


def test_what_the_rings_forgot_cannot_be_cut_to():
    held = resident(range(1000), snapshots=[shot(400)])
    index = index_of(held, rings=RINGS)
    for length, snapshot in ((500, None), (500, held.snapshots[0]), (300, held.snapshots[0]), (1001, None)):
        with pytest.raises(ValueError, match="cannot be cut"):
            index.truncate(held, length, snapshot)
    assert len(held.keys) == 1000


def test_snapshots_are_kept_by_length_and_one_a_length():
    held = resident(range(100))
    index = index_of(held, rings=RINGS)
    for end in (60, 20, 90, 60):
        index.add_snapshot(held, newest := shot(end))
    assert [s.end for s in held.snapshots] == [20, 60, 90]
    assert held.snapshots[1] is newest
    index.drop_snapshot(held, newest)
    assert [s.end for s in held.snapshots] == [20, 90]


@pytest.mark.parametrize("useless", [shot(101), shot(60, written=77)])
def test_a_snapshot_that_could_not_be_continued_is_refused(useless):
    held = resident(range(100))
    with pytest.raises(ValueError, match="of no use"):
        index_of(held, rings=RINGS).add_snapshot(held, useless)


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


def test_a_snapshot_that_several_share_counts_once():
    handle = object()
    index = index_of(
        resident(range(50), "a", nbytes=100, snapshots=[shot(20, handle=handle), shot(30)]),
        resident(range(40), "a", nbytes=100, snapshots=[shot(20, handle=handle)]),
        resident(range(40), "b", nbytes=7, snapshots=[shot(20)]),
    )
    assert index.nbytes_by_scope() == {"a": 220, "b": 17}
    assert index.nbytes() == 237
    for one in index.residents:
        index.remove(one)
    assert (index.nbytes_by_scope(), index.nbytes()) == ({}, 0)


def test_a_copy_shares_the_snapshots_that_serve_it():
    snapshots = [shot(40), shot(90), shot(95), shot(400)]
    carried = RINGS.carried(snapshots, 85)
    assert [s.handle for s in carried] == [snapshots[0].handle, snapshots[1].handle]
    assert [s.end for s in carried] == [40, 85]


# The whole, against a plain model

IDS = st.lists(st.integers(0, 1), min_size=1, max_size=60)


@st.composite
def any_resident(draw):
    ids = draw(IDS)
    ends = sorted(draw(st.sets(st.integers(1, len(ids)), max_size=3)))
    return resident(
        ids,
        draw(st.sampled_from("ab")),
        written=len(ids) + draw(st.integers(0, 5)),
        leased=draw(st.booleans()),
        snapshots=[shot(end, end + draw(st.integers(0, 2))) for end in ends],
    )


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.lists(any_resident(), max_size=6), IDS, st.sampled_from([None, 8, 20]), st.sampled_from([2, 4]))
def test_plans_are_those_of_a_plain_model(residents, prompt, size, slack):
    index = index_of(*residents, rings=Rings(size, slack))
    reuse = index.plan(prompt, "a")

    def usable(one, same, length):  # by the rule, written out
        states = [(len(one.keys), one.written)] + [(s.end, s.written) for s in one.snapshots]
        return length <= same and any(
            length <= end and (size is None or written <= size or written - length <= slack) for end, written in states
        )

    candidates, common = [], 0
    for one in residents:
        if one.scope == "a":
            same = 0
            while same < min(len(prompt) - 1, len(one.keys)) and prompt[same] == one.keys[same]:
                same += 1
            common = max(common, same)
            candidates += [
                (length, not one.leased and len(one.keys) - length <= slack)
                for length in range(1, same + 1)
                if usable(one, same, length)
            ]
    length, in_place = max(candidates, default=(0, False))
    assert (reuse.length, reuse.common, reuse.in_place) == (length, common, in_place)
    assert bool(reuse.lost) == (length < common)
    assert (reuse.source is None) == (length == 0)
    if reuse.in_place:
        index.truncate(reuse.source, length, reuse.snapshot)
        assert list(reuse.source.keys) == prompt[:length]
        assert all(a.end < b.end <= length for a, b in pairwise([shot(0), *reuse.source.snapshots]))
