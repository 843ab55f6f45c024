"""How one request ends: told once, and what it raises concerns nobody else. Among others: ``test_failures.py``."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from langchain_gemma_jax.engine.base.events import Events, Finished
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.loop.request_endings import RequestEndings
from langchain_gemma_jax.engine.requests.inbox import Inbox
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.requests.request import Request, RequestSpec
from langchain_gemma_jax.errors import CancelledRequestError, DeviceFailedError


def request() -> Request:
    decoder = SimpleNamespace(push=chr, finish=str)
    return Request(RequestSpec("m", Prompt.of_tokens([1, 2]), Sampling(), 0, frozenset(), 10), decoder)


@pytest.fixture
def told():
    return []


@pytest.fixture
def work(told):
    events = Events()
    events.subscribe(Finished, told.append)
    return SimpleNamespace(inbox=Inbox(), events=events, raised=[], scheduler=())


def test_a_request_that_cannot_be_begun_is_answered_and_nobody_else_hears_of_it(work, told):
    asked = request()
    assert work.inbox.offer(asked, 1)
    problem = ValueError("by its grammar")
    RequestEndings(work).refuse_one(asked, problem)
    answer = asked.mailbox.get(1)
    assert isinstance(answer, DeviceFailedError)
    assert "could not be begun: ValueError: by its grammar" in str(answer)
    assert answer.__cause__ is problem
    assert work.raised == [problem], "whose frames are cleared at the end of the round"
    assert work.inbox.queued == 0
    assert len(told) == 1


def test_one_that_has_ended_is_not_ended_again(work, told):
    asked = request()
    RequestEndings(work).finish(asked, CancelledRequestError("too late"))  # no scheduler knows it any more
    assert (told, asked.mailbox.has_ended) == ([], False)
