from __future__ import annotations

import doctest
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_gemma_jax.engine.requests import stop_strings
from langchain_gemma_jax.engine.requests.stop_strings import StopStrings
from tests.counted import growth

STOPS = st.lists(st.text("ab", min_size=1, max_size=5), max_size=4)
TEXTS = st.text("abc", max_size=30)


def first_complete(stops, text):
    """Where the first complete stop begins, and the stop."""
    for end in range(1, len(text) + 1):
        if ending := [stop for stop in stops if text[:end].endswith(stop)]:
            longest = max(ending, key=len)
            return end - len(longest), longest
    return None


def necessary(stops, text):
    """How many characters at the end some continuation would make a part of the stop that is found."""
    for count in range(len(text), 0, -1):
        tail, shown = text[-count:], len(text) - count
        for stop in stops:
            whole = text + stop[count:]
            if stop.startswith(tail) and len(stop) > count and first_complete(stops, whole) == (shown, stop):
                return count
    return 0


def split(text, cuts):
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[low:high] for low, high in pairwise(places)]


@given(STOPS, TEXTS, st.lists(st.integers(0, 100), max_size=8))
@settings(max_examples=200, deadline=None)
def test_any_split_shows_all_that_is_before_the_stop_and_nothing_else(stops, text, cuts):
    matcher, shown, found = StopStrings(stops), "", None
    for piece in split(text, cuts):
        out, found = matcher.push(piece)
        shown += out
    shown += matcher.finish()
    expected = first_complete(stops, text)
    assert (shown, found) == ((text, None) if expected is None else (text[: expected[0]], expected[1]))


@given(STOPS, TEXTS)
@settings(max_examples=200, deadline=None)
def test_exactly_what_is_necessary_is_held_back(stops, text):
    matcher = StopStrings(stops)
    shown, found = matcher.push(text)
    if found is None:
        assert (len(text) - len(shown), matcher.held) == (necessary(stops, text), text[len(shown) :])


def test_a_stop_that_is_split_is_never_shown():
    matcher = StopStrings(["Observation:"])
    pieces = [matcher.push(piece) for piece in ["Thought: x\nObs", "erv", "ation", ": 7"]]
    assert pieces == [("Thought: x\n", None), ("", None), ("", None), ("", "Observation:")]


def test_what_was_not_a_stop_is_shown_after_all():
    matcher = StopStrings(["aab"])
    assert [matcher.push(character)[0] for character in "aaac"] == ["", "", "a", "aac"]
    assert matcher.push("xaa") == ("x", None)
    assert matcher.finish() == "aa"
    assert matcher.finish() == ""


def test_nothing_follows_a_stop():
    matcher = StopStrings(["!"])
    assert matcher.push("a!b") == ("a", "!")
    assert matcher.push("c") == ("", "!")
    assert (matcher.finish(), matcher.held) == ("", "")


def test_the_first_that_is_complete_wins_and_of_those_the_longest():
    assert StopStrings(["bcd", "c"]).push("abcd") == ("ab", "c")
    assert StopStrings(["c", "abc", "bc"]).push("xabc") == ("x", "abc")


def test_a_stop_that_can_never_be_first_holds_nothing_back():
    assert StopStrings(["xaby", "ab"]).push("_x") == ("_x", None)


def test_no_stops_hold_nothing_back():
    assert StopStrings(()).push("text") == ("text", None)


def test_an_empty_stop_is_refused():
    with pytest.raises(ValueError, match="empty"):
        StopStrings(["a", ""])


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ("a" * 1_000 + "b", "a" * 3_000),
        ("ab" * 500 + "!", "ab" * 1_500),
        ("a" * 1_000 + "b", ("a" * 999 + "c") * 3),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_the_cost_is_linear_in_hostile_text(stop, text, size):
    def match(part):
        matcher = StopStrings([stop[: len(stop) * len(part) // len(text)] + stop[-1], "zz"])
        shown = [matcher.push(part[at : at + size])[0] for at in range(0, len(part), size)]
        assert "".join(shown) + matcher.finish() == part

    assert growth(lambda: match(text[: len(text) // 8]), lambda: match(text)) < 12  # quadratic: 64


def test_the_examples_are_true():
    found = doctest.testmod(stop_strings)
    assert (found.failed, found.attempted > 2) == (0, True)
