from __future__ import annotations

import itertools

import pytest

from benchmarks.rivals import whole_answers
from benchmarks.rivals.whole_answers import time_answers, timed, unlike
from benchmarks.work.workload import DECODE, LONG_PROMPT, PROMPT, READS

TEXT = [2, *range(1000, 3000)]


class Counting:
    """An engine whose answers take a made-up second for each token."""

    facts = {}  # noqa: RUF012

    def __init__(self):
        self.prompts, self.now = [], 0.0

    def prepared(self, prompt):
        self.now += 1000  # which is not timed
        return prompt

    def answer(self, prompt, tokens):
        self.prompts.append(tuple(prompt))
        self.now += len(prompt) + 10 * tokens
        return list(range(tokens))


def test_reads_and_tokens_are_told_apart(monkeypatch):
    engine = Counting()
    monkeypatch.setattr(whole_answers.time, "perf_counter", lambda: engine.now)
    found = time_answers(engine, unlike(TEXT))
    assert found["prefill"] == {str(LONG_PROMPT): [LONG_PROMPT + 10] * READS, str(PROMPT): [PROMPT + 10] * READS}
    assert found["decode"] == pytest.approx(10)
    assert len(found["tokens"]) == 1 + DECODE


def test_no_prompt_begins_as_another_did_so_that_none_can_be_taken_over():
    prompts = [tuple(each[:PROMPT]) for each in itertools.islice(unlike(TEXT), 40)]
    assert {each[0] for each in prompts} == {2}
    assert len({each[1:3] for each in prompts}) == len(prompts)


def test_a_short_answer_is_an_error_and_not_fast():
    class Short:
        facts = {}  # noqa: RUF012

        def prepared(self, prompt):
            return prompt

        def answer(self, prompt, tokens):
            return [1]

    with pytest.raises(RuntimeError, match="Expected an answer of 33 tokens behind 3, found 1"):
        timed(Short(), [2, 3, 4], 33)
