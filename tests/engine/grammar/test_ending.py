"""Where in a grammar a text is, and its shortest ending."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.engine.grammar.ending import Outline
from langchain_gemma_jax.engine.grammar.lark import lark, quoted
from langchain_gemma_jax.engine.grammar.leaves import Before, Number, UpTo, Words
from langchain_gemma_jax.engine.grammar.nodes import (
    NOTHING,
    Control,
    Grammar,
    Literal,
    Repeat,
    Rule,
    either,
    maybe,
    sequence,
)
from langchain_gemma_jax.engine.grammar.pattern import Chars, Times

DIGITS = Number(Times(Chars(((48, 57),)), 1, 3))


def outline(root, **rules):
    return Outline(Grammar("k", root, rules))


def test_a_text_is_followed_and_ended():
    root = sequence(Literal("["), Repeat(DIGITS, Literal(", "), 2, 3), Literal("]"), Control("<end>"))
    grammar = outline(root)
    place = grammar.start
    assert grammar.ending(place) == (b"[0, 0]", "<end>")
    place = grammar.text(place, b"[12, 3")
    assert (grammar.ending(place), grammar.cost(place)) == ((b"]", "<end>"), 2)
    assert grammar.ending(grammar.text(place, b", ")) == (b"0]", "<end>")
    assert not grammar.text(place, b"]]").possible
    assert not grammar.text(place, b", 1, ").possible
    place = grammar.text(place, b"]")
    assert not grammar.control(place, "<other>").possible
    over = grammar.control(place, "<end>")
    assert (over.complete, over.threads, grammar.ending(over)) == (True, (), ())


def test_of_several_ways_to_go_on_the_shortest_counts():
    ways = either(Literal("ab"), Literal("abcd"), sequence(Literal("a"), Rule("long")))
    grammar = outline(sequence(ways, Literal("!")), long=Literal("x" * 50))
    assert grammar.ending(grammar.start) == (b"ab!",)
    place = grammar.text(grammar.start, b"a")
    assert len(place.threads) == 3
    assert grammar.ending(grammar.text(place, b"bc")) == (b"d!",)
    assert grammar.cost(grammar.text(place, b"x")) == 50


def test_a_character_that_has_begun_is_completed():
    grammar = outline(sequence(Literal('"'), Words(low=2, escaped=True), Literal('"')))
    place = grammar.text(grammar.start, b'"\xe2\x82')
    (ending,) = grammar.ending(place)
    text = (b'"\xe2\x82' + ending).decode()
    assert len(text) == 4
    assert len(grammar.ending(grammar.text(grammar.start, b'"\\'))[0]) == len('na"')


def test_alternatives_that_are_the_same_do_not_multiply():
    same = either(*(sequence(Literal('"'), Words(high=high, escaped=True), Literal('"')) for high in (None, 98, 99)))
    grammar = outline(Repeat(same, Literal(",")))
    place = grammar.start
    for _ in range(12):
        place = grammar.text(place, b'"a","b",')
        assert len(place.threads) <= 6


def test_a_long_chain_of_optional_parts_is_no_matter_of_pythons_stack():
    rules, rest = {}, NOTHING
    for number in reversed(range(3000)):
        rules[str(number)] = either(sequence(Literal(f"<{number}>"), rest), rest)
        rest = Rule(str(number))
    grammar = Outline(Grammar("k", rest, rules))
    place = grammar.text(grammar.start, b"<7><2999>")
    assert place.complete


@pytest.mark.parametrize("marker", ["```tool_call\n", "aab\n", "aaa"])
def test_free_text_ends_where_a_line_begins_with_the_marker(marker):
    rng = random.Random(3)
    free, up_to = outline(Before(marker)), outline(UpTo(marker))
    pieces = [marker, marker[:-1], "a", "\n", "é", "`", marker[:2]]
    for _ in range(300):
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(0, 6)))
        found = ("\n" + text).find("\n" + marker)
        assert free.text(free.start, text.encode()).complete == (found < 0)
        end = found + len(marker)
        place = up_to.text(up_to.start, text.encode())
        assert place.complete == (found >= 0 and end == len(text))
        if found >= 0 and end < len(text):
            assert not place.possible
    assert free.is_free(free.start)
    assert not outline(Words()).is_free(outline(Words()).start)


def test_a_grammar_as_text():
    root = sequence(Literal('a"'), Control("<c>"), maybe(Rule("x")), Repeat(DIGITS, NOTHING, 2), UpTo("m"))
    text = lark(Grammar("k", root, {"x": either(Literal("\n"), Words())}), {"<c>": 7})
    assert text.splitlines()[0] == r'start: "a\u0022" <[7]> (r0 | "") (T0{2,}) t1'
    assert "t1[lazy]: T1" in text
    assert 'r0: "\\u000a" | T2' in text
    with pytest.raises(KeyError):
        lark(Grammar("k", root, {"x": Words()}), {})
    assert quoted("é\u2028") == '"é\\u2028"'
