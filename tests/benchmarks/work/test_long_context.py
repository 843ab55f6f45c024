from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from benchmarks.work.long_context import FEW, LONG, RESULT, SAID, VERY_LONG, time_long
from benchmarks.work.page_loss import mean_loss

TEXT = list(range(2, 1500))


class Speaking:
    """A talker that notes what it was given."""

    def __init__(self, most: int = 1 + FEW) -> None:
        self.held: list[tuple[int, ...]] = []
        self.fresh: list[tuple[int, ...]] = []
        self._forgot, self._most = True, most

    def forget(self) -> None:
        self._forgot = True

    def answer(self, context: Sequence[int], count: int) -> Iterator[int]:
        self.held.append(tuple(context))
        if self._forgot:
            self.fresh.append(tuple(context))
        self._forgot = False
        yield from range(min(count, self._most))


def test_each_work_has_its_length_and_no_prompt_begins_like_another():
    talker = Speaking()
    rounds = [time_long(talker, number, TEXT) for number in range(3)]
    assert [len(context) for context in talker.held[:4]] == [SAID, SAID + 1 + RESULT, LONG, VERY_LONG]
    assert talker.held[1][:SAID] == talker.held[0], "a result stands behind what was said"
    beginnings = {context[:8] for context in talker.fresh}
    assert len(beginnings) == len(talker.fresh) == 9
    assert all({"result", "prompt", "very long prompt", "behind", "tokens"} == set(found) for found in rounds)
    with pytest.raises(RuntimeError, match=rf"Expected {1 + FEW} tokens behind {VERY_LONG}, found 4"):
        time_long(Speaking(most=4), 0, TEXT)


def test_a_loss_is_the_mean_of_the_tokens_negative_log_probabilities():
    scores = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    ids = [3, 1, 6, 0, 2, 5]
    shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    expected = -np.log([shares[place, token] for place, token in enumerate(ids[1:])]).mean()
    assert mean_loss(iter(scores), ids) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(RuntimeError, match="Expected scores at 5 places, found 4"):
        mean_loss(iter(scores[:4]), ids)
