from __future__ import annotations

import pytest

from benchmarks.work.several import AT_ONCE, EACH, OBJECT, prompts_of, time_object, time_together

TEXT = list(range(2, 1500))


def test_no_two_prompts_begin_alike():
    seen = set()
    for number in range(6):
        for count in AT_ONCE:
            prompts = prompts_of(TEXT, 10 * number + count, count)
            assert {len(prompt) for prompt in prompts} == {64}
            assert len({tuple(prompt[:4]) for prompt in prompts}) == count
            seen |= {tuple(prompt[:4]) for prompt in prompts}
    assert len(seen) > 60


def test_each_work_is_as_large_as_it_says_and_short_answers_are_refused():
    given = []

    def decode(prompts, count):
        given.append(len(prompts))
        return [[0] * count for _ in prompts]

    assert set(time_together(decode, 0, TEXT)) == {str(count) for count in AT_ONCE}
    assert tuple(given) == AT_ONCE
    with pytest.raises(RuntimeError, match=rf"Expected 2 answers of {EACH} tokens, found \[31, 31\]"):
        time_together(lambda prompts, count: [[0] * (count - 1) for _ in prompts], 0, TEXT)
    assert time_object(lambda _, count: count, 0, TEXT) > 0
    with pytest.raises(RuntimeError, match=f"Expected {OBJECT} tokens under the grammar, found 12"):
        time_object(lambda *_: 12, 0, TEXT)
