"""Nobody waits for a program that would fit better, as long as another one does: it is made in the background."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.executables import libraries
from langchain_gemma_jax.engine.executables.library import Library, ReadyProgram, Tally
from langchain_gemma_jax.errors import DeviceFailedError
from tests.engine.tiny import LADDERS, settle, text
from tests.waiting import LONG, until

CHECK = LADDERS.check  # tokens of the chunk in which drafts are checked


class Workshop:
    """Where programs are made: some of them not before ``gate`` is open, and some never."""

    def __init__(self, common):
        self.gate = threading.Event()
        self.held = self.broken = lambda _key: False
        self.made: Counter[tuple] = Counter()
        self._common = common

    def library(self, programs, tally, _name, background):
        return _Made(self, self._common(programs), programs, tally, background)

    def make(self, key, common) -> ReadyProgram:
        self.made[key] += 1
        if self.held(key):
            assert self.gate.wait(LONG), f"{key} is still held"
        if self.broken(key):
            raise RuntimeError("it cannot be made")
        return common.make(key)


class _Made(Library):
    def __init__(self, workshop, common, programs, tally: Tally, background):
        super().__init__(programs, None, tally, background=background)
        self._workshop, self._common = workshop, common

    def _compile(self, key) -> ReadyProgram:
        return self._workshop.make(key, self._common)


@pytest.fixture
def workshop(_compiled):
    workshop = Workshop(_compiled)
    yield workshop
    workshop.gate.set()


@pytest.fixture
def engine_with(engine_of, workshop, monkeypatch, tiny_model):
    """``engine_with(drafts=True)``: an engine, its model, and the programs that it runs, in their order."""
    monkeypatch.setattr(libraries, "library_of", workshop.library)

    def engine_with(**settings):
        engine = engine_of(**settings)
        served = engine.serve(tiny_model)
        device, ran = engine._owner.models.runners[served].device, []
        run = device.run

        def watched(key, *args):
            ran.append(key)
            return run(key, *args)

        device.run = watched
        return engine, served, ran

    return engine_with


def answers(engine, served, asked):
    generations = [engine.submit(served, prompt, how, timeout=LONG) for prompt, how in asked]
    return [generation.result().ids for generation in generations]


def six(rng):
    """Greedy and seeded requests that stay in one bucket."""
    return [
        (text(rng, 9), Sampling(max_tokens=12, temperature=float(number % 2), seed=number, ignore_eos=True))
        for number in range(6)
    ]


def widths(ran):
    return {key[1] for key in ran if key[0] == "step"}


@pytest.mark.long
def test_requests_run_in_the_steps_that_are_there_while_wider_ones_are_made(engine_with, workshop, rng):
    workshop.held = lambda key: key[:2] == ("step", 8)
    engine, served, ran = engine_with()
    asked = six(rng)
    alone = [answers(engine, served, [each])[0] for each in asked]
    assert not any(key[0] == "step" and key[1] > 1 for key in workshop.made), "nobody asked for those"

    assert answers(engine, served, asked) == alone
    assert widths(ran) == {1}
    until(lambda: workshop.made["step", 8, 32])  # a step for all six is being made

    workshop.gate.set()
    settle(engine)
    ran.clear()
    assert answers(engine, served, asked) == alone
    assert 8 in widths(ran)
    # Nothing is made twice, nor outside of the ladders; and a third time nothing at all.
    settle(engine)
    before = dict(workshop.made)
    assert answers(engine, served, asked) == alone
    settle(engine)
    assert workshop.made == before
    assert set(before.values()) == {1}
    assert engine.report().programs <= engine.report().program_bound


@pytest.mark.long
@pytest.mark.parametrize("few", [True, False])
def test_where_few_programs_are_enough_the_chunk_for_a_tools_result_is_made_during_the_first_answer(
    engine_with, workshop, rng, monkeypatch, few
):
    engine, served, ran = engine_with(ladders=replace(LADDERS, chunks=(16, 32)))
    at_hand = engine._owner.models.runners[served]._at_hand
    monkeypatch.setattr(at_hand, "_ladders", replace(at_hand._ladders, padding_is_free=few))
    engine.submit(served, text(rng, 30), Sampling(max_tokens=2, ignore_eos=True)).result()
    settle(engine)
    assert {key[:2] for key in ran if key[0] == "read"} == {("read", 32)}
    assert {key[:2] for key in workshop.made if key[0] == "read"} == {("read", 32)} | ({("read", 16)} if few else set())


@pytest.mark.long
@pytest.mark.parametrize(
    ("there", "together", "width"), [((1, 2), 6, 2), ((1, 8), 3, 8), ((1, 2, 8), 3, 8), ((1, 2, 8), 2, 2)]
)
def test_of_the_steps_that_are_there_the_best_is_taken(engine_with, workshop, rng, there, together, width):
    workshop.held = lambda key: key[0] == "step" and key[1] not in there
    engine, served, ran = engine_with(ladders=replace(LADDERS, rows=(1, 2, 8)))
    asked = six(rng)[:together]
    alone = [answers(engine, served, [each])[0] for each in asked]
    runner = engine._owner.models.runners[served]
    for rows in there:
        for key in (("step", rows, 32), ("pick", rows)):
            runner.library.make(key)
    ran.clear()
    assert answers(engine, served, asked) == alone
    assert max(widths(ran)) == width
    assert widths(ran) <= set(there)


def test_a_long_prompt_is_read_in_the_chunks_that_are_there(engine_with, workshop, rng):
    workshop.held = lambda key: key[0] == "read" and key[1] == 32
    engine, served, ran = engine_with()
    long, how = text(rng, 100), Sampling(max_tokens=4)
    engine._owner.models.runners[served].library.make(("read", 16, 128))
    (slowly,) = answers(engine, served, [(long, how)])
    used = {key[1] for key in ran if key[0] == "read"}  # what is left at the end may fit a smaller one
    assert 16 in used
    assert 32 not in used

    workshop.gate.set()
    settle(engine)
    ran.clear()
    assert engine.submit(served, long, how, scope="anew", timeout=LONG).result().ids == slowly
    assert 32 in {key[1] for key in ran if key[0] == "read"}


def test_a_first_prompt_waits_for_one_program_that_reads_it(engine_with, workshop, rng):
    """Of 34 tokens, 32 and 4 would be best, once both are there."""
    workshop.held = lambda key: key[0] == "read" and key[1] != 32
    engine, served, ran = engine_with()
    prompt, how = text(rng, 34), Sampling(max_tokens=4)
    (first,) = answers(engine, served, [(prompt, how)])
    assert [key[1] for key in ran if key[0] == "read"] == [32, 32]

    workshop.gate.set()
    settle(engine)
    ran.clear()
    assert engine.submit(served, prompt, how, scope="anew", timeout=LONG).result().ids == first
    assert [key[1] for key in ran if key[0] == "read"] == [32, 4]
    assert max(workshop.made.values()) == 1


@pytest.mark.long
def test_drafts_are_checked_as_soon_as_they_can_be(engine_with, workshop, rng):
    workshop.held = lambda key: key[:2] == ("read", CHECK)
    engine, served, ran = engine_with(drafts=True)
    prompt = (text(rng, 3) * 20)[:64]  # which is read in the largest chunks alone
    how = Sampling(max_tokens=30, ignore_eos=True)
    (plainly,) = answers(engine, served, [(prompt, how)])
    assert CHECK not in {key[1] for key in ran if key[0] == "read"}
    until(lambda: any(key[:2] == ("read", CHECK) for key in workshop.made))  # something was drafted

    workshop.gate.set()
    settle(engine)
    assert engine.submit(served, prompt, how, scope="anew", timeout=LONG).result().ids == plainly
    assert CHECK in {key[1] for key in ran if key[0] == "read"}


@pytest.mark.long
def test_a_program_that_cannot_be_made_is_no_secret(engine_with, workshop, rng):
    workshop.broken = lambda key: key[0] == "step" and key[1] == 8
    engine, served, _ = engine_with()
    asked = six(rng)
    answers(engine, served, asked[:1])
    settle(engine)

    def several_times() -> None:
        for _ in range(3):  # the first ones may be over before it was tried
            answers(engine, served, asked)
            settle(engine)

    with pytest.raises(DeviceFailedError, match="it cannot be made"):
        several_times()
    workshop.broken = lambda _key: False
    assert len(answers(engine, served, asked)) == 6
