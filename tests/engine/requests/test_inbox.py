"""The inbox alone: whatever is sent is taken, refused or answered; with a thread around it: loop/test_owner.py."""

from __future__ import annotations

from queue import Empty
from types import SimpleNamespace

import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.inbox import Inbox
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.requests.request import Request, RequestSpec
from langchain_gemma_jax.errors import ClosedError


def request() -> Request:
    decoder = SimpleNamespace(push=chr, finish=str)
    return Request(RequestSpec("m", Prompt.of_tokens([1, 2]), Sampling(), 0, frozenset(), 10), decoder)


def test_what_is_sent_comes_in_its_order():
    inbox, sent, ran = Inbox(), [request() for _ in range(3)], []
    assert all(inbox.offer(each, 10) for each in sent)
    answer = inbox.call(lambda: ran.append(1) or "done")
    assert [inbox.get(None) for _ in sent] == sent
    inbox.get(0.0)()
    assert (ran, answer.get(1).give()) == ([1], "done")
    for patience in (0.0, 0.001):
        with pytest.raises(Empty):
            inbox.get(patience)


def test_only_so_many_wait_and_whoever_is_begun_makes_room():
    inbox, sent = Inbox(), [request() for _ in range(4)]
    assert [inbox.offer(each, 2) for each in sent] == [True, True, False, False]
    assert (inbox.queued, inbox.waiting) == (2, tuple(sent[:2]))
    assert 0 < inbox.oldest_wait_s < 60
    inbox.begun(inbox.get(0.0))
    assert inbox.offer(sent[2], 2)
    assert not inbox.offer(sent[3], 2)
    assert inbox.queued == 2


def test_an_interrupt_while_it_is_sent_leaves_no_request_that_waits(monkeypatch):
    inbox = Inbox()

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(inbox, "_put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        inbox.offer(request(), 1)
    monkeypatch.undo()
    assert (inbox.queued, inbox.oldest_wait_s) == (0, 0.0)
    assert inbox.offer(request(), 1)


def test_a_signal_handler_in_the_midst_of_an_offer_does_not_wait_for_itself(monkeypatch):
    inbox, handlers = Inbox(), request()
    put = inbox._put

    def put_among_signals(item):
        monkeypatch.setattr(inbox, "_put", put)
        assert not inbox.offer(handlers, 1), "the one that is just being sent counts"
        put(item)

    monkeypatch.setattr(inbox, "_put", put_among_signals)
    assert inbox.offer(request(), 1)
    assert inbox.queued == 1


def test_when_it_closes_calls_get_their_error_and_when_it_ends_so_does_everybody():
    inbox, waiting = Inbox(), request()
    assert inbox.offer(waiting, 10)
    before = inbox.call(lambda: "too late")
    inbox.close()
    assert inbox.closing
    assert inbox.end() == [waiting]
    with pytest.raises(ClosedError, match=r"engine\(\) starts a new one"):
        before.get(1).give()
    with pytest.raises(ClosedError):
        inbox.offer(request(), 10)
    with pytest.raises(ClosedError):
        inbox.call(lambda: "later still").get(1).give()


def test_what_is_sent_behind_the_last_look_is_answered_by_who_sent_it():
    inbox, late = Inbox(), request()
    inbox.end()
    inbox._ended = False  # as this thread saw it, just before
    put = inbox._items.put

    def ends_now(item):
        put(item)
        inbox._ended = True

    inbox._items = SimpleNamespace(put=ends_now, get_nowait=inbox._items.get_nowait)
    assert inbox.offer(late, 1)
    assert isinstance(late.mailbox.get(1), ClosedError)
    assert inbox.queued == 0
