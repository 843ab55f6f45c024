"""Terminals, by the texts that they let through."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from langchain_gemma_jax.grammar.pattern_text import parse
from langchain_gemma_jax.grammar.reading import Reading
from langchain_gemma_jax.grammar.terminals import before, up_to, words

TEXTS = st.text(st.sampled_from("ab\n`é\x00"), max_size=9)
READ = {
    "words": Reading(words()),
    "two to four": Reading(words(low=2, high=4)),
    "of a pattern": Reading(words([parse("^[ab]*$"), parse("a")], high=3, excluded=["a", "ab"])),
    "before": Reading(before("``")),
    "up to": Reading(up_to("``")),
}


@given(TEXTS)
def test_they_take_what_they_say(text):
    plain = "\x00" not in text
    assert READ["words"].fits(text) == plain
    assert READ["two to four"].fits(text) == (plain and 2 <= len(text) <= 4)
    assert READ["of a pattern"].fits(text) == (
        bool(re.fullmatch("[ab]{1,3}", text)) and "a" in text and text not in {"a", "ab"}
    )
    assert READ["before"].fits(text) == (not any(line.startswith("``") for line in text.split("\n")))


def test_text_up_to_a_marker_ends_behind_it():
    assert READ["up to"].fits("``")
    assert READ["up to"].fits("a`b\n``")
    assert not READ["up to"].fits("a``")
