"""Patterns of schemas against Python's own ``re``."""

from __future__ import annotations

import random
import re

import pytest

from langchain_gemma_jax.engine.grammar.automaton import Automaton, ByteAutomaton
from langchain_gemma_jax.engine.grammar.pattern import in_json
from langchain_gemma_jax.engine.grammar.pattern_text import parse

ATOMS = (
    "a",
    "b",
    "é",
    ".",
    r"\d",
    r"\w",
    r"\s",
    r"\D",
    r"\W",
    r"\S",
    "[ab]",
    "[^a]",
    r"[\d-]",
    r"[^\s\d]",
    r"\.",
    r"\n",
    "漢",
)
LETTERS = 'ab1é漢 .\n_-"\\Ω\u2028٣\u00a0'


def pattern(rng, depth=2):
    parts = []
    for _ in range(rng.randint(1, 3)):
        part = rng.choice(ATOMS)
        if depth and rng.random() < 0.3:
            part = f"({rng.choice(['', '?:', '?P<n' + str(rng.randrange(10**6)) + '>'])}{pattern(rng, depth - 1)})"
        parts.append(part + rng.choice(["", "", "", "*", "+", "?", "{2}", "{1,2}", "{2,}", "*?"]))
    found = "".join(parts)
    return f"{found}|{pattern(rng, depth - 1)}" if depth and rng.random() < 0.2 else found


def reads(automaton, text):
    state = automaton.start
    for byte in text.encode():
        state = automaton.step(state, byte)
        if state is None:
            return False
    return automaton.distance(state) == 0


@pytest.mark.parametrize("seed", range(150))
def test_what_is_taken_is_found_by_python_too(seed):
    rng = random.Random(seed)
    inner = pattern(rng)
    if "|" not in inner:
        inner = rng.choice(["", "^"]) + inner + rng.choice(["", "$"])
    reader = ByteAutomaton(Automaton.of(parse(inner)), escaped=False)
    for _ in range(60):
        text = "".join(rng.choice(LETTERS) for _ in range(rng.randint(0, 6)))
        taken, found = reads(reader, text), re.search(inner, text)
        assert not taken or found, (inner, text)
        if text.isascii() and "\n" not in text:  # elsewhere validators differ, and less is taken
            assert taken == bool(found), (inner, text)


@pytest.mark.parametrize("seed", range(60))
def test_endings_are_the_shortest_and_lead_to_an_end(seed):
    rng = random.Random(seed)
    inner = pattern(rng)
    escaped = rng.random() < 0.5
    reader = ByteAutomaton(Automaton.of(parse(f"^(?:{inner})$")), escaped=escaped)
    state = reader.start
    for _ in range(8):
        ending = reader.ending(state)
        assert len(ending) == reader.distance(state)
        after = state
        for number, byte in enumerate(ending):
            after = reader.step(after, byte)
            assert reader.distance(after) == len(ending) - number - 1
        bytes_ = [byte for byte in range(256) if reader.step(state, byte) is not None]
        if not bytes_:
            break
        state = reader.step(state, rng.choice(bytes_))


def test_inside_quotes_it_is_the_same_text_escaped():
    import json

    rng = random.Random(0)
    for text in ('"', "\\", "\n\t\r\b\f", "\0\x1f", "a/é"):
        plain = parse(f"^{re.escape(text)}$") if text.isprintable() else parse(r"^[^é]*$")
        reader = ByteAutomaton(Automaton.of(plain), escaped=True)
        inside = json.dumps(text, ensure_ascii=False)[1:-1]
        if not text.isprintable() or reads(ByteAutomaton(Automaton.of(plain), escaped=False), text):
            assert reads(reader, inside), (text, rng)
        unescaped = ByteAutomaton(Automaton.of(in_json(plain)), escaped=False)
        assert reads(unescaped, inside) == reads(reader, inside)


@pytest.mark.parametrize(
    "text",
    [
        *("(", ")", "a)", "[", "[]", "[z-a]", "*", "a**", "a{2}{3}", "a{3,2}", "a{1001}", "(?=a)", "(?!a)", "(?<=a)"),
        *("(?i)a", r"\1", r"\b", r"\p{L}", "a^", "a$b", "(^a)", "(a$)", "\\", r"\x1", r"\u{110000}", r"\ud800"),
        *("[[:alpha:]]", r"[\w-z]", r"\z"),
    ],
)
def test_what_cannot_be_promised_is_named(text):
    with pytest.raises(ValueError, match=r"the pattern .* has "):
        parse(text)


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        (r"^\u0041\x42\u{43}$", "ABC", "abc"),
        ("^a{,2}$", "a{,2}", "aa"),
        (r"^\/\-$", "/-", "/"),
        ("^[-a]$", "-", "b"),
        ("^[a-]$", "-", "b"),
        (r"^[\]]$", "]", "["),
        ("^$", "", "a"),
        ("^a|b$", "xb", "xa"),
        (r"^[\b]$", "\b", "b"),
        ("", "anything", None),
    ],
)
def test_how_it_is_read(text, yes, no):
    reader = ByteAutomaton(Automaton.of(parse(text)), escaped=False)
    assert reads(reader, yes)
    assert no is None or not reads(reader, no)
