"""Long conversations: nothing grows faster than what is sent, and what is far too long is refused early."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_gemma_jax import ContextLengthError
from langchain_gemma_jax.chat.calling.ready_model import FAR_TOO_LONG


def steps_of(work: Callable[[], object]) -> int:
    """Number of functions called for it, of Python and of C."""
    steps = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal steps
        steps += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return steps


@pytest.mark.long
@pytest.mark.parametrize("kind", ["messages", "results", "parts"])
def test_twice_the_messages_are_twice_the_work(kind, scripted):
    model, _ = scripted(room=1 << 20)

    def work(count: int) -> Callable[[], object]:
        told: Sequence[Any] = [HumanMessage("a")] * count
        if kind == "results":
            calls = [{"name": "f", "args": {}, "id": str(number)} for number in range(count)]
            told = [HumanMessage("a"), AIMessage("", tool_calls=calls)]
            told += [ToolMessage("a", tool_call_id=str(number)) for number in reversed(range(count))]
        elif kind == "parts":
            told = [HumanMessage([{"type": "text", "text": "a"}] * count)]
        return lambda: model.get_num_tokens_from_messages(list(told))

    work(10)()
    small, large = (steps_of(work(count)) for count in (500, 2000))
    assert large < 4.4 * small


def test_what_is_far_too_long_is_refused_before_it_is_encoded(scripted, monkeypatch):
    model, engine = scripted(room=512)
    encoded: list[int] = []
    encode = type(engine.model.tokenizer).encode_text

    def counted(self, text: str) -> list[int]:
        encoded.append(len(text))
        return encode(self, text)

    monkeypatch.setattr(type(engine.model.tokenizer), "encode_text", counted)
    most = FAR_TOO_LONG * engine.max_context
    longer = "ab " * most * engine.model.tokenizer.longest_token
    for told in ([HumanMessage("a")] * (most + 1), [HumanMessage(longer)]):
        encoded.clear()
        with pytest.raises(ContextLengthError, match="at least") as caught:
            model.invoke(told)
        assert caught.value.at_least
        assert sum(encoded) < 1000
    with pytest.raises(ContextLengthError, match="has at least") as caught:
        model.invoke([HumanMessage("a b c " * 10)] * most)  # which ends while it is encoded
    assert sum(encoded) < most * 60 // 2
    with pytest.raises(ContextLengthError) as caught:
        model.invoke("ab " * engine.max_context)
    assert not caught.value.at_least, "what is a little too long is counted to the end: whoever trims wants to know"
    assert model.get_num_tokens_from_messages([HumanMessage("a")] * (most + 1)) > most
