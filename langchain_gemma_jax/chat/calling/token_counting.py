"""Counts of tokens: of a conversation, exactly as a model would read it, and of a text."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.ready_model import ready
from langchain_gemma_jax.chat.history.history import History
from langchain_gemma_jax.chat.history.messages_in import conversation
from langchain_gemma_jax.chat.model_choice.route_step import routed
from langchain_gemma_jax.dialects import Message, ToolCall
from langchain_gemma_jax.engine.requests.clock import Clock


def count_tokens(messages: Sequence[BaseMessage], options: Options) -> int:
    """Return the number of tokens of the whole prompt, with the tools and all that the format adds."""
    turns = conversation(messages, piece=True)
    if not turns:
        return 0
    options = _on_its_model(options, messages, turns)
    _, encoded = ready(options, Clock(options.timeout)).prompt(
        History(options.scope, _whole(turns)), options, counts=True
    )
    return len(encoded.ids)


def token_ids(text: str, options: Options) -> list[int]:
    """Return a text's tokens, without anything that a format adds."""
    options = _on_its_model(options, (), ())
    return ready(options, Clock(options.timeout)).tokenizer.encode_text(text)


def _on_its_model(options: Options, messages: Sequence[BaseMessage], turns: Sequence[Message]) -> Options:
    return options if options.route is None else routed(options, messages, History(options.scope, turns))


def _whole(turns: Sequence[Message]) -> list[Message]:
    """Return the conversation with a call made up for each result that lost its own.

    Code that trims a conversation counts pieces of it that no model ever reads.
    """
    found: list[Message] = []
    calling = False
    for number, message in enumerate(turns):
        if message.result is not None and not calling:
            results = [each.result for each in turns[number:]]
            lost = results[: next((i for i, result in enumerate(results) if result is None), len(results))]
            calls = [ToolCall(result.name or "tool", {}, result.id) for result in lost if result is not None]
            found.append(Message.assistant(calls=calls))
            calling = True
        elif message.result is None:
            calling = bool(message.calls)
        found.append(message)
    return found
