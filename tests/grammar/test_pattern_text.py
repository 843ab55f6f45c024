"""Patterns of schemas against Python's own ``re``."""

from __future__ import annotations

import json
import random
import re
import string

import pytest

from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.grammar.pattern_text import parse
from langchain_gemma_jax.grammar.reading import Reading
from langchain_gemma_jax.grammar.terminals import words
from tests.dialects.walks import takes

ATOMS = (
    "a", "b", "é", ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", "[ab]", "[^a]", r"[\d-]", r"[^\s\d]", r"\.", r"\n",
    "漢",
)  # fmt: skip
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


def fits(text):
    """Return a function that says if texts fit a pattern."""
    return Reading(words([parse(text)])).fits


def test_what_is_taken_is_found_by_python_too():
    for seed in range(150):
        rng = random.Random(seed)
        inner = pattern(rng)
        if "|" not in inner:
            inner = rng.choice(["", "^"]) + inner + rng.choice(["", "$"])
        reads = fits(inner)
        for _ in range(60):
            text = "".join(rng.choice(LETTERS) for _ in range(rng.randint(0, 6)))
            taken, found = reads(text), re.search(inner, text)
            assert not taken or found, (inner, text)
            if text.isascii() and "\n" not in text:  # elsewhere validators differ, and less is taken
                assert taken == bool(found), (inner, text)


@pytest.mark.long
def test_every_character_is_in_the_classes_as_all_validators_have_them():
    """Python's classes are those of its ``re``; JavaScript's are ASCII's, but for white space."""
    javascript_space = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
        map(chr, range(0x2000, 0x200B))
    )
    codes = [*range(0x3000), *range(0x3000, 0xD800, 37), *range(0xE000, 0x110000, 997), 0xFEFF, 0x10FFFF]
    every = {
        r"\d": lambda c: c in string.digits,
        r"\w": lambda c: c in string.digits + string.ascii_letters + "_",
        r"\s": lambda c: c in javascript_space,
        ".": lambda c: c not in "\n\r\u2028\u2029",
    }
    for name, javascript in every.items():
        for written, negated in ((name, False), (name.upper(), True), (f"[^{name}]", True)):
            if name == "." and negated:
                continue
            reads = fits(f"^{written}$")
            taken = [chr(code) for code in codes if reads(chr(code))]
            for character in taken:
                assert javascript(character) != negated, (written, character)
                assert re.fullmatch(written, character), (written, character)
            assert len(taken) >= (6 if not negated else 60)


def test_inside_quotes_it_is_the_same_text_escaped():
    for text in ('"', "\\", "\n\t\r\b\f", "\0\x1f", "a/é😀"):
        grammar = json_grammar(
            {"type": "string", "pattern": f"^{re.escape(text)}$" if text.isprintable() else "^[^é]*$"}
        )
        assert takes(grammar, json.dumps(text, ensure_ascii=False)), text
    assert not takes(json_grammar({"type": "string", "pattern": "^[^a]$"}), '"\\u0061"')
    assert not takes(json_grammar({"type": "string", "pattern": "^a$"}), '"\\"')


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
    reads = fits(text)
    assert reads(yes)
    assert no is None or not reads(no)
