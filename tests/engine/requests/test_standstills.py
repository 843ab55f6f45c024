"""A late request's error names its state: also while the owner thread stands still for a program."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.engine.executables import libraries
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.requests import clock
from langchain_gemma_jax.engine.requests import request as request_module
from langchain_gemma_jax.engine.requests.clock import MOST, Standstills
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.requests.request import Request, RequestSpec, Stage, deadline_error
from langchain_gemma_jax.errors import DeadlineError
from tests.engine.tiny import CONTEXT, settle


class Hands:
    """A clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        for module in (clock, request_module):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))


def test_a_deadline_says_what_the_request_was_at_and_what_its_time_went_into(monkeypatch):
    hands, stood = Hands(monkeypatch), Standstills()
    asked = RequestSpec("m", Prompt.of_tokens([1, 2]), Sampling(), 0, frozenset(), 10, submitted_at=100.0)
    one = Request(asked, SimpleNamespace())

    def told():
        return str(deadline_error(one, stood)).removeprefix("The deadline passed ").partition(", with 0")[0]

    hands.now = 101.0
    assert told() == "1.0 s after submission, while waiting for its turn (1.0 s waiting for its turn)"
    one.progress.stages.become(Stage.LOADING)
    hands.now = 103.0
    assert told().endswith("while loading weights (1.0 s waiting for its turn, 2.0 s loading weights)")
    one.progress.stages.become(Stage.QUEUED)
    with stood.here("compiling step 1 512"):  # for somebody else, and this one waits with them
        hands.now = 107.0
        assert "while compiling step 1 512 (1.0 s waiting for its turn, 2.0 s loading weights, 4.0 s comp" in told()
    hands.now = 108.0
    one.progress.stages.become(Stage.READING)
    hands.now = 108.5
    assert told() == (
        "8.5 s after submission, while reading (2.0 s waiting for its turn, 2.0 s loading weights, "
        "4.0 s compiling step 1 512, 0.5 s reading)"
    )
    one.progress.stages.become(Stage.WRITING)
    with stood.here("fetching pick 1"):
        hands.now += 1.0
    one.progress.stages.become(Stage.WRITING)
    hands.now += 0.5
    assert told().endswith("while writing (2.0 s waiting for its turn, 2.0 s loading weights, 4.0 s compiling step "
                           "1 512, 0.5 s reading, 0.5 s writing, 1.0 s fetching pick 1)")  # fmt: skip


def test_the_latest_standstills_are_remembered_and_cut_to_what_is_asked_for(monkeypatch):
    hands, stood = Hands(monkeypatch), Standstills()
    for number in range(2 * MOST):
        with stood.here(str(number)):
            hands.now += 1.0
    assert len(stood.between(0.0, 1000.0)) == MOST
    assert [tuple(each) for each in stood.between(hands.now - 1.5, hands.now - 0.5)] == [
        (hands.now - 1.5, hands.now - 1.0, str(2 * MOST - 2)),
        (hands.now - 1.0, hands.now - 0.5, str(2 * MOST - 1)),
    ]


def test_whoever_waits_while_a_program_is_made_hears_its_name(engine_of, tiny_model, monkeypatch):
    begun, gate = threading.Event(), threading.Event()

    class Held(Library):
        def make(self, key):
            begun.set()
            gate.wait()
            raise RuntimeError("not made in this test")

    def held(programs: Programs, tally, name, *_):
        return Held(programs, None, tally, name=name)

    monkeypatch.setattr(libraries, "library_of", held)
    engine = engine_of(ladders=Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1,)), guards="off")
    served = engine.serve(tiny_model)
    try:
        first = engine.submit(served, [2, 9], Sampling(max_tokens=2), timeout=0.3)
        begun.wait()
        second = engine.submit(served, [2, 9], Sampling(max_tokens=2), timeout=0.1)  # which nobody looks at
        for each in (first, second):
            with pytest.raises(DeadlineError, match=rf"while compiling {served.name} empty \(.* with 0 tok"):
                each.result()
    finally:
        gate.set()
        settle(engine)


def test_a_standstill_that_lasts_is_told_with_its_length_and_those_that_are_over_are_added_up(monkeypatch):
    hands, stood = Hands(monkeypatch), Standstills()
    assert stood.lasting() is None
    for seconds in (5.0, 2.5):
        with stood.here("compiling m read 16 512"):
            hands.now += seconds
            lasting = stood.lasting()
            assert (lasting.end - lasting.began, lasting.what) == (seconds, "compiling m read 16 512")
        assert stood.lasting() is None
    assert stood.seconds == 7.5
