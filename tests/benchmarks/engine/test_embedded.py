"""The report of the embedded models' speed."""

from __future__ import annotations

from benchmarks.engine import embedded
from benchmarks.running.page import replace_block
from langchain_gemma_jax.engine.base.events import Timings
from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.models.configuration.embedded import DEFAULT


def answer(first: float, total: float, tokens: int = 201) -> Completion:
    counts = dict.fromkeys(("reused_tokens", "drafted_tokens", "accepted_tokens", "forced_tokens", "compiled"), 0)
    times = Timings(0.0, first, first, total)
    return Completion(tuple(range(tokens)), "", "length", None, 500, bucket=1024, timings=times, **counts)


def test_speed_is_of_the_tokens_behind_the_first():
    assert embedded.speed(answer(1.0, 3.0)) == 100


def test_medians_are_held_to_the_bars_of_the_default_model():
    text = embedded.report({DEFAULT: [answer(0.1, 0.6), answer(0.2, 0.7), answer(9.0, 99.0)]}, 0.1)
    assert f"| {DEFAULT} | 200 | 400 |" in text
    assert text.count("reached") == 2
    slow = embedded.report({DEFAULT: [answer(0.4, 2.4)]}, None)
    assert slow.count("**missed**") == 2
    assert "missed" not in embedded.report({"another": [answer(0.4, 2.4)]}, None)


def test_the_page_has_its_place():
    page = embedded.PAGE.read_text()
    assert replace_block(page, "new", embedded.BLOCK) != page
