"""The device programs by themselves: what they are given away, and that padding, rows and pages change nothing."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.device.knobs import knobs, packed
from langchain_gemma_jax.engine.device.page_pool import Tables
from langchain_gemma_jax.engine.device.programs import MAX_STOPS, PAGES_AT_ONCE, RowSettings
from tests.engine.device.made_up_pool import by_kind
from tests.engine.tiny import CONTEXT, text

CAPACITY = 64


@pytest.fixture
def bench(engine_of, tiny_model):
    """The programs of the usual model, for use in this thread."""
    engine = engine_of()
    return Bench(engine._owner.models.runners[engine.serve(tiny_model)])


class Bench:
    """Conversations by their pages: a list of pages for the global layers, and one for the local ones."""

    def __init__(self, runner):
        self.programs, self.params = runner.library.programs, runner.params
        self.device, self.shape = runner.device.placement.devices[0], runner.kv_store.held.shape
        self.everything = np.full(-(-self.shape.architecture.vocab_size // 32), 0xFFFFFFFF, np.uint32)
        self.pool = self.programs.empty()()

    def put(self, *numbers):
        return jax.device_put(np.array(numbers, np.int32), self.device)

    def rows(self, *options):
        """Return the settings of rows, each from a request's options."""
        given = np.stack([packed(knobs(prompt_length=0, **each)) for each in options])
        return jax.device_put(RowSettings(given, (self.everything,) * len(options)), self.device)

    def tables(self, *conversations, capacity=CAPACITY):
        """Return the tables of conversations, each given as the first of its pages, which stand in a row."""
        slots, entries = self.shape.pages.slots, self.shape.local_entries
        whole = [[first + page for page in range(capacity // slots)] for first in conversations]
        local = [[first + page for page in range(entries)] for first in conversations]
        return jax.device_put(Tables(np.array(whole, np.int32), np.array(local, np.int32)), self.device)

    def shuffled(self, rng, count):
        """Return the tables of several conversations whose pages lie in any order among each other."""
        slots, entries = self.shape.pages.slots, self.shape.local_entries
        kinds = ((self.shape.pages.whole, CAPACITY // slots), (self.shape.pages.local, entries))
        found = [
            np.array(rng.sample(range(1, pages), count * each), np.int32).reshape(count, each) for pages, each in kinds
        ]
        return Tables(*found)

    def read(self, ids, tables, start=0, size=32, padding=0, first=None):
        tokens = np.full((1, size), padding, np.int32)
        tokens[0, : len(ids)] = ids
        first = len(ids) - 1 if first is None else first
        hidden, ends, self.pool = self.programs.read(
            self.params,
            jax.device_put(tokens, self.device),
            self.put(start),
            self.put(len(ids)),
            jax.device_put(np.array(first, np.int32), self.device),
            tables,
            self.pool,
        )
        return hidden, ends

    def pick(self, hidden, ends, real, tables, settings):
        number = jax.device_put(np.array(real, np.int32), self.device)
        return self.programs.pick(self.params, hidden, ends, number, tables.whole, self.pool.ids, settings)

    def step(self, token, ends, tables, settings):
        picked, ends, self.pool = self.programs.step(self.params, token, ends, self.put(1), tables, self.pool, settings)
        return picked, ends


def gone(tree):
    return {leaf.is_deleted() for leaf in jax.tree.leaves(tree)}


def values(tree):
    return [np.asarray(jax.device_get(leaf)) for leaf in jax.tree.leaves(tree)]


def of(tables, *rows):
    return jax.device_put(jax.tree.map(lambda table: table[list(rows)], tables), jax.devices()[0])


GREEDY = {"seed": 0, "temperature": 0.0}


def test_the_pool_is_given_away_where_that_is_said_and_kept_where_not(bench, rng):
    ids, programs, tables, picks = text(rng, 20), bench.programs, bench.tables(1), bench.shape.picks
    empty = bench.pool
    hidden, ends = bench.read(ids, tables)
    assert gone(empty) == {True}
    read = bench.pool
    bench.pick(hidden, ends, 1, bench.tables(*[1] * picks, capacity=CONTEXT), bench.rows(*[GREEDY] * picks))
    pages = jax.device_put(Tables(*[np.zeros(PAGES_AT_ONCE, np.int32)] * 2), bench.device)
    contents = programs.take_pages(pages, read)
    assert gone((read, contents, hidden, ends, tables)) == {False}
    copied = programs.copy_pages(pages, pages, read)
    assert gone(read) == {True}
    put = programs.put_pages(pages, contents, copied)
    assert gone(copied) == {True}
    assert gone((contents, pages)) == {False}
    bench.pool = put
    bench.step(bench.put(7), bench.put(20), tables, bench.rows(GREEDY))
    assert gone(put) == {True}
    assert gone((bench.pool, bench.params, tables)) == {False}


def test_what_the_padding_holds_changes_nothing(bench, rng):
    ids, row, tables = text(rng, 20), bench.rows(GREEDY), bench.tables(1)
    found = []
    for padding in (0, 99):
        hidden, ends = bench.read(ids, tables, padding=padding)
        picked, ends = bench.step(bench.put(7), bench.put(20), tables, row)
        found.append([values(hidden)[0][:1], *values(picked), *values(ends)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_conversation_touches_its_own_pages_alone_and_they_may_lie_anywhere(bench, rng):
    """Chunks and steps give the same whichever pages have the conversation; no other page is written to."""
    ids, row, found = text(rng, 31), bench.rows(GREEDY), []
    for _ in range(3):
        tables = bench.shuffled(rng, 2)
        mine = of(tables, 0)
        before = by_kind(bench.shape, bench.pool)
        bench.read(ids[:13], mine)
        bench.read(ids[13:30], mine, start=13)
        picked, _ = bench.step(bench.put(ids[30]), bench.put(30), mine, row)
        found.append(values(picked))
        after = by_kind(bench.shape, bench.pool)
        for local, own in ((False, tables.whole[0]), (True, tables.local[0])):
            for array, old in zip(after[local], before[local], strict=True):
                others = np.setdiff1d(np.arange(1, len(array)), own)
                np.testing.assert_array_equal(array[others], old[others])
                assert (array != old).any()
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_the_last_tokens_are_dropped_by_reading_on_from_fewer(bench, rng):
    ids, other, row, tables = text(rng, 24), text(rng, 20), bench.rows(GREEDY), bench.tables(1)
    bench.read(ids, tables)
    plainly = values(bench.step(bench.put(7), bench.put(24), tables, row))
    bench.read(ids[:20], tables)
    bench.read(other[:3], tables, start=20)  # a draft that is not what comes next: within the slack of the window
    bench.read(ids[20:], tables, start=20)
    for one, two in zip(values(bench.step(bench.put(7), bench.put(24), tables, row)), plainly, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-4)


@pytest.mark.long
def test_rows_are_apart_and_checked_tokens_are_those_of_steps(bench, rng):
    prompts, options = [text(rng, 20), text(rng, 9)], [{"seed": seed, "temperature": 0.5} for seed in (1, 2)]
    picks, tables, answers = bench.shape.picks, bench.shuffled(rng, 3), []
    for number, (prompt, option) in enumerate(zip(prompts, options, strict=True)):
        mine, row = of(tables, number), bench.rows(option)
        bench.read(prompt[:-1], mine)
        token, ends, answer = bench.put(prompt[-1]), bench.put(len(prompt) - 1), []
        for _ in range(8):
            picked, ends = bench.step(token, ends, mine, row)
            token = picked.tokens
            answer.append(int(jax.device_get(token)[0]))
        answers.append(answer)
        # All eight at once, in pages of their own.
        fresh = of(tables, 2)
        bench.read(prompt[:-1], fresh)
        hidden, places = bench.read([prompt[-1], *answer[:-1]], fresh, start=len(prompt) - 1, size=16, first=0)
        history = np.zeros((picks, CONTEXT // bench.shape.pages.slots), np.int32)
        history[:, : tables.whole.shape[1]] = tables.whole[2]
        whole = jax.device_put(Tables(history, history), bench.device)
        picked = bench.pick(hidden, places, 8, whole, bench.rows(*[option] * picks))
        assert jax.device_get(picked.tokens).tolist()[:8] == answer
    rows = bench.shape.picks
    both = Tables(*(np.zeros((rows, table.shape[1]), np.int32) for table in (tables.whole, tables.local)))
    both.whole[:2], both.local[:2] = tables.whole[:2], tables.local[:2]
    on_device, settings = of(both, *range(rows)), bench.rows(*options, *[GREEDY] * (rows - 2))
    for number, prompt in enumerate(prompts):
        bench.read(prompt[:-1], of(tables, number))
    unused = [0] * (rows - 2)
    tokens, ends = bench.put(*(prompt[-1] for prompt in prompts), *unused), bench.put(19, 8, *unused)
    alive, together = bench.put(1, 1, *unused), []
    history = np.zeros((rows, CONTEXT // bench.shape.pages.slots), np.int32)
    history[:, : both.whole.shape[1]] = both.whole
    whole = jax.device_put(Tables(history, history), bench.device)
    for _ in range(8):
        hidden, ends, bench.pool = bench.programs.advance(bench.params, tokens, ends, alive, on_device, bench.pool)
        picked = bench.pick(hidden, ends, 2, whole, settings)
        tokens = picked.tokens
        together.append(jax.device_get(tokens).tolist()[:2])
    assert [list(answer) for answer in zip(*together, strict=True)] == answers
    assert jax.device_get(ends).tolist() == [27, 16, *unused]


@pytest.mark.long
def test_a_loop_makes_the_tokens_of_steps_and_ends_where_a_row_ends(engine_of, tiny_model, rng):
    engine = engine_of(loop_steps=6)
    bench = Bench(engine._owner.models.runners[engine.serve(tiny_model)])
    prompts, options = [text(rng, 20), text(rng, 9)], [GREEDY, {"seed": 4, "temperature": 0.7}]
    tables, answers = bench.shuffled(rng, 2), []
    for number, (prompt, option) in enumerate(zip(prompts, options, strict=True)):
        mine, row = of(tables, number), bench.rows(option)
        bench.read(prompt[:-1], mine)
        token, ends, answer = bench.put(prompt[-1]), bench.put(len(prompt) - 1), []
        for _ in range(6):
            picked, ends = bench.step(token, ends, mine, row)
            token = picked.tokens
            answer.append(int(jax.device_get(token)[0]))
        answers.append(answer)
    for limits, stop in (((6, 6), None), ((3, 6), None), ((6, 2), None), ((6, 6), answers[1][2]), ((0, 6), None)):
        stops = np.full((2, MAX_STOPS), -1, np.int32)
        wanted = [answer[:limit] for answer, limit in zip(answers, limits, strict=True)]
        if stop is not None:
            stops[1, 3] = stop
            wanted[1] = answers[1][: answers[1].index(stop) + 1]
        for number, prompt in enumerate(prompts):
            bench.read(prompt[:-1], of(tables, number))
        out, got, bench.pool = bench.programs.loop(
            bench.params,
            bench.put(*(prompt[-1] for prompt in prompts)),
            bench.put(19, 8),
            bench.put(*limits),
            jax.device_put(stops, bench.device),
            of(tables, 0, 1),
            bench.pool,
            bench.rows(*options),
        )
        tokens, counts = jax.device_get((out.tokens, got))
        assert counts.tolist() == [len(each) for each in wanted]
        assert [tokens[: len(each), row].tolist() for row, each in enumerate(wanted)] == wanted
