"""Sessions: turns of one conversation have one name, other conversations another."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables.config import var_child_runnable_config

from langchain_gemma_jax.client.exchange import WireRequest
from langchain_gemma_jax.client.sessions import session_of
from langchain_gemma_jax.wire.addresses import Address
from langchain_gemma_jax.wire.message_forms import messages_out

SYSTEM, HELLO = SystemMessage("Be brief."), HumanMessage("Hello!", id="1")
LATER = [SYSTEM, HumanMessage("Hello!", id="2"), AIMessage("Hi."), HumanMessage("And then?")]


def of(messages, scope=""):
    return session_of(messages_out(messages), scope)


def test_all_turns_of_a_conversation_are_one_session():
    assert of([SYSTEM, HELLO]) == of(LATER)
    others = [[HELLO], [SYSTEM, HumanMessage("Hi!")], [SystemMessage("Be long."), HELLO]]
    assert len({of([SYSTEM, HELLO]), of([SYSTEM, HELLO], "a"), *map(of, others)}) == 5
    assert of([SYSTEM]) is of([]) is None
    assert "Hello" not in of([HELLO])
    assert len(of([HELLO])) == 32


def test_a_thread_is_a_session_whatever_is_left_of_its_beginning():
    token = var_child_runnable_config.set({"configurable": {"thread_id": "t-1"}})
    try:
        assert of([HELLO]) == of(LATER[1:]) == of([SYSTEM])
        assert "t-1" not in of([HELLO])
        assert of([HELLO]) != of([HELLO], "a")
    finally:
        var_child_runnable_config.reset(token)


def test_it_is_sent_where_there_may_be_a_router():
    wire = WireRequest(Address(host="h", port=80, below="/gemma"), "answer", b"{}", session="abc")
    head = wire.request.partition(b"\r\n\r\n")[0].decode()
    assert head.startswith("POST /gemma/gemma-jax/2/answer HTTP/1.1\r\n")
    assert "\r\nx-session-id: abc" in head
    assert b"x-session-id" not in WireRequest(Address(path="/a.sock"), "answer", b"{}").request
