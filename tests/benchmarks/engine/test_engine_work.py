from __future__ import annotations

from types import SimpleNamespace

from benchmarks.engine import engine_work as work
from benchmarks.work.conversation import ANSWER, AT_ONCE, NEW_TOKENS, SHORT_ANSWER, SHORT_PROMPT
from benchmarks.work.replay import ANSWER as REPLAY
from benchmarks.work.vocabulary import encode


class FakeEngine:
    """Answers every prompt with the same tokens, and notes what it was asked."""

    def __init__(self, answer=None):
        self.asked = []
        self.answer = answer
        self.taken = []
        self.steps = 0

    def submit(self, served, prompt, sampling, *, scope="", system=0):
        number = len(self.asked)
        self.asked.append((tuple(prompt), sampling, scope))
        return FakeGeneration(self, number, (self.answer or [9] * sampling.max_tokens)[: sampling.max_tokens])

    def report(self):
        counts = dict.fromkeys(("host_s", "dispatch_s", "device_s", "bytes_to_device"), self.steps * 2)
        return SimpleNamespace(steps=self.steps, **counts)


class FakeGeneration:
    def __init__(self, engine, number, ids):
        self.engine, self.number, self.ids = engine, number, tuple(ids)

    def __iter__(self):
        for token in self.ids:
            self.engine.steps += 1
            yield SimpleNamespace(ids=(token,), text="")

    def result(self):
        self.engine.taken.append(self.number)
        return SimpleNamespace(ids=self.ids, reused_tokens=7, drafted_tokens=5, accepted_tokens=3)


def test_a_conversation_shares_nothing_with_the_one_before():
    engine = FakeEngine()
    plain = work.conversation(engine, None, 0, drafts=False)
    drafted = work.conversation(engine, None, 0, drafts=True)
    assert plain["tokens"] == drafted["tokens"] == [[9] * ANSWER] * len(NEW_TOKENS)
    assert plain["reused"] == [7] * len(NEW_TOKENS)
    half = len(NEW_TOKENS)
    assert [prompt for prompt, *_ in engine.asked[:half]] == [prompt for prompt, *_ in engine.asked[half:]]
    assert len({scope for *_, scope in engine.asked}) == 2
    assert [sampling.drafts for _, sampling, _ in engine.asked] == [False] * half + [True] * half
    assert {(sampling.temperature, sampling.ignore_eos) for _, sampling, _ in engine.asked} == {(0.0, True)}


def test_short_conversations_are_all_different_and_submitted_before_any_is_awaited():
    engine = FakeEngine()
    found = work.together(engine, None, 0)
    most = max(AT_ONCE)
    assert len(found["alone"]) == most
    assert {len(prompt) for prompt, *_ in engine.asked} == {SHORT_PROMPT}
    assert len({prompt[:4] for prompt, *_ in engine.asked}) == len(engine.asked) == most + sum(AT_ONCE)
    assert engine.taken == list(range(len(engine.asked)))
    assert {sampling.max_tokens for _, sampling, _ in engine.asked} == {SHORT_ANSWER}


def test_short_conversations_overlap():
    order = []

    class Noting(FakeEngine):
        def submit(self, *arguments, **options):
            order.append("submit")
            generation = super().submit(*arguments, **options)
            take = generation.result
            generation.result = lambda: order.append("result") or take()
            return generation

    work.together(Noting(), None, 0)
    assert order[:4] == ["submit", "result"] * 2, "one after another"
    assert order[-16:] == ["submit"] * 8 + ["result"] * 8, "at once"


def test_an_answer_other_than_the_taught_one_is_seen():
    expected = encode(REPLAY)
    right = work.replay(FakeEngine(expected), None, 0, drafts=True)
    assert (right["as_taught"], right["tokens"]) == (len(expected), len(expected))
    assert (right["drafted"], right["accepted"]) == (5, 3)
    assert 0 < right["first"] <= right["whole"]
    wrong = work.replay(FakeEngine([*expected[:-1], 5]), None, 0, drafts=False)
    assert wrong["as_taught"] == len(expected) - 1


def test_the_context_of_a_replay_is_read_each_time():
    engine = FakeEngine(encode(REPLAY))
    for number in (0, 1):
        for drafts in (False, True):
            work.replay(engine, None, number, drafts=drafts)
    assert len({scope for *_, scope in engine.asked}) == 4
    assert [sampling.drafts for _, sampling, _ in engine.asked] == [False, True] * 2


def test_steps_are_counted_from_where_every_prompt_was_read():
    engine = FakeEngine()
    found = work.steps(engine, None, 0, rows=4)
    assert found["steps"] == 4 * (SHORT_ANSWER - 1)
    assert found["bytes"] == found["host"] == 2 * found["steps"]
    assert found["seconds"] > 0
