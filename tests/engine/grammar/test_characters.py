"""Sets of characters, and what UTF-8 makes of them."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.engine.grammar import characters
from langchain_gemma_jax.engine.grammar.characters import EVERY
from langchain_gemma_jax.engine.grammar.utf8 import encoded

EDGES = (0, 1, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFE, 0x10FFFF)


def some(rng):
    ends = sorted(rng.choice([rng.choice(EDGES), rng.randrange(0x110000), rng.randrange(256)]) for _ in range(2))
    return tuple(ends)


def members(found):
    return {code for low, high in found for code in range(low, high + 1)}


@pytest.mark.parametrize("seed", range(30))
def test_sets_are_sets(seed):
    rng = random.Random(seed)
    first, second = (characters.union((n, n + rng.randrange(40)) for n in rng.sample(range(300), 5)) for _ in range(2))
    one, two = members(first), members(second)
    assert members(characters.common(first, second)) == one & two
    assert members(characters.without(first, second)) == one - two
    assert members(characters.union([*first, *second])) == one | two


def fits(way, data):
    return len(way) == len(data) and all(low <= byte <= high for byte, (low, high) in zip(data, way, strict=True))


@pytest.mark.parametrize("seed", range(60))
def test_bytes_are_those_of_the_characters_and_of_no_others(seed):
    rng = random.Random(seed)
    found = characters.common(characters.union(some(rng) for _ in range(2)), EVERY)
    ways = encoded(found)
    near = (end + step for each in found for end in each for step in (-1, 0, 1))
    for code in {*EDGES, *near, *(rng.randrange(0x110000) for _ in range(50))}:
        if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            inside = any(low <= code <= high for low, high in found)
            assert sum(fits(way, chr(code).encode()) for way in ways) == inside, hex(code)


def test_no_half_of_a_surrogate_pair_is_ever_written():
    assert not any(way[0] == (0xED, 0xED) and way[1][1] > 0x9F for way in encoded(EVERY))
