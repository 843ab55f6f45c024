from __future__ import annotations

from benchmarks.engine.ours_engine import MAX_CONTEXT
from benchmarks.work.conversation import ANSWER, CAPACITY, LENGTH, NEW_TOKENS, hold, rounds, turns
from benchmarks.work.workload import VOCABULARY


class Echo:
    """Says how long the context is, and counts on from there."""

    def __init__(self):
        self.contexts = []
        self.forgotten = 0

    def forget(self):
        self.forgotten += 1

    def answer(self, context, count):
        self.contexts.append(context)
        yield from range(len(context), len(context) + count)


def test_the_conversation_is_the_one_that_was_measured_first():
    assert LENGTH == 2080
    assert [len(new) for new in turns(3)] == list(NEW_TOKENS)
    assert LENGTH <= MAX_CONTEXT <= CAPACITY


def test_each_round_has_tokens_of_its_own():
    assert turns(0) == turns(0)
    assert turns(0)[0][:4] != turns(1)[0][:4]
    assert all(0 < token < VOCABULARY for new in turns(0) for token in new)


def test_each_turn_gets_all_that_was_said_and_its_own_answers():
    talker = Echo()
    held = hold(talker, seed=0, count=3)
    new = turns(0)
    assert talker.forgotten == 1
    assert talker.contexts[0] == tuple(new[0])
    assert talker.contexts[1] == (*new[0], 800, 801, 802, *new[1])
    assert held["tokens"][0] == [800, 801, 802]
    assert len(talker.contexts[-1]) == sum(NEW_TOKENS) + 9 * 3
    assert all(0 < first <= whole for first, whole in zip(held["first"], held["whole"], strict=True))


def test_the_first_token_is_timed_apart_from_the_others():
    class Slow(Echo):
        def answer(self, context, count):
            import time

            yield 5
            time.sleep(0.5)
            yield 6

    held = hold(Slow(), seed=0, count=2, until=2)
    assert len(held["first"]) == 2
    assert min(held["first"]) < 0.5 <= min(held["whole"])


def test_rounds_have_the_same_numbers_for_everybody():
    next_round = rounds(lambda number: {"number": number})
    assert [next_round()["number"] for _ in range(3)] == [0, 1, 2]


def test_an_answer_is_as_long_as_agreed():
    assert [len(tokens) for tokens in hold(Echo(), seed=0)["tokens"]] == [ANSWER] * 10
