"""The device programs by themselves: what they are given away, and that padding and rows change nothing."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.device.knobs import knobs
from langchain_gemma_jax.engine.device.programs import RowKnobs
from tests.engine.tiny import text

CAPACITY = 64


@pytest.fixture
def bench(engine_of, tiny_model):
    """The programs of the usual model, for use in this thread."""
    engine = engine_of()
    runner = engine._owner.models.runners[engine.serve(tiny_model)]
    return Bench(runner)


class Bench:
    def __init__(self, runner):
        self.programs, self.params, self.device = (
            runner.library.programs,
            runner.params,
            runner.device.placement.devices[0],
        )
        self.idle = runner.knobs.idle_row

    def put(self, *numbers):
        return jax.device_put(np.array(numbers, np.int32), self.device)

    def row(self, **options):
        return RowKnobs(jax.device_put(knobs(prompt_length=0, **options), self.device), self.idle.allowed)

    def empty(self):
        return self.programs.empty(CAPACITY)()

    def read(self, ids, sequence, start=0, size=32, padding=0):
        tokens = np.full((1, size), padding, np.int32)
        tokens[0, : len(ids)] = ids
        return self.programs.read(
            self.params, jax.device_put(tokens, self.device), self.put(start), self.put(len(ids)), sequence
        )


def gone(tree):
    return {leaf.is_deleted() for leaf in jax.tree.leaves(tree)}


def values(tree):
    return [np.asarray(jax.device_get(leaf)) for leaf in jax.tree.leaves(tree)]


def test_a_sequence_is_given_away_where_that_is_said_and_kept_where_not(bench, rng):
    ids, row, programs = text(rng, 20), bench.row(seed=0, temperature=0.0), bench.programs
    sequence = bench.empty()
    hidden, ends, read = bench.read(ids, sequence)
    assert gone(sequence) == {True}
    programs.pick(bench.params, hidden, ends, (read.ids,), (row,))
    rings = programs.snapshot(read)
    copy = programs.resize(CAPACITY)(read)
    assert gone((read, rings, copy, hidden, ends)) == {False}
    restored = programs.restore(copy, rings)
    assert gone(rings) == gone(read) == {False}
    assert any(leaf.is_deleted() for leaf in jax.tree.leaves(copy))
    _, _, (stepped,) = programs.step(bench.params, bench.put(7), bench.put(20), (restored,), (row,))
    assert gone(restored) == {True}
    assert gone((read, rings, stepped, bench.params)) == {False}


def test_what_the_padding_holds_changes_nothing(bench, rng):
    ids, row = text(rng, 20), bench.row(seed=0, temperature=0.0)
    found = []
    for padding in (0, 99):
        hidden, ends, sequence = bench.read(ids, bench.empty(), padding=padding)
        picked, ends, (sequence,) = bench.programs.step(bench.params, bench.put(7), ends, (sequence,), (row,))
        found.append([*values(hidden), *values(picked), *values(ends)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.long
def test_rows_are_apart_and_verified_tokens_are_those_of_steps(bench, rng):
    prompts, rows = [text(rng, 20), text(rng, 9)], [bench.row(seed=seed, temperature=0.5) for seed in (1, 2)]
    answers = []
    for prompt, row in zip(prompts, rows, strict=True):
        _, ends, sequence = bench.read(prompt[:-1], bench.empty())
        token, answer = bench.put(prompt[-1]), []
        for _ in range(8):
            picked, ends, (sequence,) = bench.programs.step(bench.params, token, ends, (sequence,), (row,))
            token = picked.tokens
            answer.append(int(jax.device_get(token)[0]))
        answers.append(answer)
        # All eight at once, on a sequence of its own.
        _, ends, fresh = bench.read(prompt[:-1], bench.empty())
        tokens = jax.device_put(np.array([[prompt[-1], *answer[:-1]]], np.int32), bench.device)
        hidden, places, fresh = bench.programs.verify(bench.params, tokens, ends, bench.put(8), fresh)
        picked = bench.programs.pick(bench.params, hidden, places, (fresh.ids,) * 8, (row,) * 8)
        assert jax.device_get(picked.tokens).tolist() == answer
    sequences = tuple(bench.read(prompt[:-1], bench.empty())[2] for prompt in prompts)
    tokens, ends = bench.put(*(prompt[-1] for prompt in prompts)), bench.put(19, 8)
    together = []
    for _ in range(8):
        hidden, ends, sequences = bench.programs.advance(bench.params, tokens, ends, sequences)
        picked = bench.programs.pick(bench.params, hidden, ends, tuple(one.ids for one in sequences), tuple(rows))
        tokens = picked.tokens
        together.append(jax.device_get(tokens).tolist())
    assert [list(answer) for answer in zip(*together, strict=True)] == answers
