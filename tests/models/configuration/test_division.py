"""How axes are divided, by plain numbers: every part once, whole heads, and bytes that add up."""

from __future__ import annotations

import random
from functools import partial

import pytest

from langchain_gemma_jax.models.configuration.abstract import Layout, abstract, walk
from langchain_gemma_jax.models.configuration.catalog import known, published
from langchain_gemma_jax.models.configuration.division import Division, Section, cut, why_not, working_counts
from tests.parity.tiny import ARCHITECTURES, small


@pytest.mark.parametrize(
    ("devices", "axes"), [(1, ()), (2, (2,)), (8, (2, 2, 2)), (6, (2, 3)), (7, (7,)), (60, (2, 2, 3, 5))]
)
def test_devices_lie_along_the_prime_factors_of_their_number(devices, axes):
    assert Division(devices).axes == axes


@pytest.mark.parametrize(
    ("devices", "section", "ways"),
    [
        (8, Section("", 16), 8),
        (8, Section("", 4), 4),  # two devices have the same
        (8, Section("", 1), 1),
        (4, Section("", 6), 2),
        (6, Section("", 8), 2),
        (3, Section("", 8), 1),
        (4, Section("", 6912, 1, 32), 4),  # 54 blocks each
        (8, Section("", 6912, 1, 32), 8),
        (2, Section("", 6912, 1, 256), 1),  # 13.5 blocks each
        (4, Section("", 8, 128, 256), 4),  # a block has two heads
        (8, Section("", 8, 128, 256), 4),
    ],
)
def test_a_section_goes_as_many_ways_as_leave_things_and_blocks_whole(devices, section, ways):
    assert Division(devices).ways(section) == ways


def test_parts_have_everything_once_and_what_is_shared_where_it_is_needed():
    rng = random.Random(0)
    for _ in range(300):
        division = Division(rng.choice([1, 2, 3, 4, 6, 8, 12]))
        sections = tuple(
            Section(str(at), rng.choice([1, 2, 3, 4, 8, 12]), rng.choice([1, 2, 4])) for at in range(rng.randint(1, 3))
        )
        parts = division.ways_of(sections)
        seen: dict[int, int] = {}
        for number in range(parts):
            cuts = division.cuts(sections, number)
            assert sum(piece.stop - piece.start for piece in cuts) == division.part(sections)
            first = 0
            for section, piece in zip(sections, cuts, strict=True):
                # The share of a section that a device with this number has, as its neighbors in the mesh have it too.
                ways = division.ways(section)
                assert (piece.start - first) * ways == section.stored * (number // (parts // ways))
                first += section.stored
                for at in range(piece.start, piece.stop):
                    seen[at] = seen.get(at, 0) + 1
        assert sorted(seen) == list(range(sum(section.stored for section in sections)))
        first = 0
        for section in sections:
            times = {seen[at] for at in range(first, first + section.stored)}
            assert times == {parts // division.ways(section)}
            first += section.stored


def test_runs_of_outputs_have_the_sections_that_lie_in_them():
    queries, keys = Section("q", 4, 8), Section("k", 2, 8)
    assert cut((queries, keys, keys), (32, 32)) == ((queries,), (keys, keys))
    assert cut((queries, keys, keys), (48, 16)) == ((queries, keys), (keys,))
    assert cut((queries, keys), (40, 8)) == ((), ())


@pytest.mark.parametrize("out_first", [True, False])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_sections_of_an_array_are_all_of_its_axis(name, out_first):
    divided = set()
    for path, spec in walk(abstract(small(name), "float32", Layout(out_first, out_first))):
        if spec.sections:
            divided.add(path[-1])
            assert sum(section.stored for section in spec.sections) == spec.stored_shape[spec.stored_along], path
            assert spec.shape[spec.along] == spec.stored_shape[spec.stored_along], path
    assert divided >= {"embed", "qkv", "attn_out", "gate_up", "down"}


def bytes_on_each(config, devices):
    division, found = Division(devices), 0
    for _, spec in walk(abstract(config)):
        length = division.part(spec.sections) / spec.shape[spec.along] if spec.sections else 1
        found += int(spec.nbytes * length)
    return found


def test_published_models_on_cards():
    e2b, large = published("gemma-4-e2b"), published("gemma-4-31b")
    for config in known().values():
        whole = bytes_on_each(config, 1)
        repeated = sum(
            spec.nbytes
            for path, spec in walk(abstract(config))
            if not spec.sections or path[-1] == "qkv"  # of which keys and values may be repeated
        )
        for devices in (1, 2, 4, 8):
            assert why_not(config, devices) is None
            assert bytes_on_each(config, devices) <= (whole / devices) * 1.02 + repeated
    assert working_counts(partial(why_not, e2b), 8) == working_counts(partial(why_not, large), 8) == (1, 2, 4, 6, 8)
    assert bytes_on_each(large, 2) < 0.502 * bytes_on_each(large, 1)
    assert bytes_on_each(large, 8) < 0.127 * bytes_on_each(large, 1)  # its four global key-value heads repeated twice


def test_what_cannot_be_divided_is_told():
    config = published("gemma-3-1b")  # four heads, one of keys and values
    assert why_not(config, 1) is None
    assert why_not(config, 8) is None  # attention goes four ways, all else eight
    assert "4 query heads do not divide among 3 devices" in str(why_not(config, 3))
    assert why_not(published("gemma-2b"), 6) == "its feed-forward of 16,384 goes 2 ways among 6 devices"
    odd = config.replace(heads=6, layers=tuple(layer.__class__(3, 8, 36, layer.rope) for layer in config.layers))
    assert "6 query heads go 2 ways and their 3 key-value heads 1" in str(why_not(odd, 2))
    assert working_counts(partial(why_not, odd), 4) == (1, 3)
