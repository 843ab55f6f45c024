"""Answers as LangChain's messages: whole, or in chunks as they come."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, InvalidToolCall, ToolCallChunk
from langchain_core.messages import ToolCall as LangChainCall
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from langchain_gemma_jax.chat.answering.answer_metadata import with_logprobs
from langchain_gemma_jax.chat.answering.answer_parts import AnswerEnd, AnswerPart, WholeAnswer
from langchain_gemma_jax.dialects import (
    ArgumentsDelta,
    CallBegin,
    Event,
    Invalid,
    TextDelta,
    ThoughtDelta,
    merged,
)

_REASONING = "reasoning_content"  # where LangChain looks for thoughts if the content is a string


def result(answered: WholeAnswer) -> ChatResult:
    """Return an answer that was not streamed as a ``ChatResult``."""
    return ChatResult(generations=[ChatGeneration(message=whole(answered))])


def generation(chunk: AIMessageChunk) -> ChatGenerationChunk:
    """Return a piece of a message as a ``ChatGenerationChunk``."""
    return ChatGenerationChunk(message=chunk)


def whole(answered: WholeAnswer) -> AIMessage:
    """Return the message of an answer that was not streamed."""
    answer = answered.answer
    return AIMessage(
        content=answer.text,
        additional_kwargs={_REASONING: answer.thinking} if answer.thinking else {},
        tool_calls=[
            LangChainCall(name=each.name, args=dict(each.arguments), id=_call_id(), type="tool_call")
            for each in answer.calls
        ],
        invalid_tool_calls=[
            InvalidToolCall(name=each.name, args=each.raw, id=_call_id(), error=each.error, type="invalid_tool_call")
            for each in answer.invalid
        ],
        usage_metadata=answered.usage,
        response_metadata=with_logprobs(answered.metadata, answered.logprobs),
    )


class Chunks:
    """The message of an answer in chunks. The last one has its cost.

    ``as_blocks``: the content is a list of blocks (LangChain's output version "v1") and not a string.
    """

    def __init__(self, *, as_blocks: bool) -> None:
        self._as_blocks = as_blocks
        self._logprobs: list[Mapping[str, Any]] = []
        self._kind = ""  # of the block that is being written
        self._block = -1
        self._calls = -1
        self._arguments: list[str] = []  # of the call that is being written

    def of(self, part: AnswerPart) -> list[AIMessageChunk]:
        """Return what a part of the answer adds: its events, and its tokens' log-probabilities."""
        self._logprobs += part.logprobs
        return self._chunks(part.events)

    def last(self, end: AnswerEnd) -> list[AIMessageChunk]:
        """Return what is left, and the last chunk."""
        chunks = self._chunks(end.events)
        chunk = self._chunk(chunk_position="last", usage_metadata=end.usage, response_metadata=end.metadata)
        return [*chunks, chunk]

    def broken(self) -> list[AIMessageChunk]:
        """Return the chunk that makes the call being written invalid, after an error ended the answer; or none."""
        begun, self._kind = self._kind == "call", ""
        return [self._call_chunk(None, unrepairable("".join(self._arguments)), None)] if begun else []

    def _chunks(self, events: Iterable[Event]) -> list[AIMessageChunk]:
        return [chunk for event in merged(events) for chunk in self._of_event(event)]

    def _of_event(self, event: Event) -> Sequence[AIMessageChunk]:
        match event:
            case TextDelta(text):
                self._enter("text")
                return [self._chunk({"type": "text", "text": text}, content=text)]
            case ThoughtDelta(text):
                self._enter("reasoning")
                return [self._chunk({"type": "reasoning", "reasoning": text}, additional_kwargs={_REASONING: text})]
            case CallBegin(name):
                return [self._begin(name, "")]
            case ArgumentsDelta(text):
                return [self._call_chunk(None, text, None)]
            case Invalid():
                return [self._ruin(event)]
            case _:
                self._kind = ""
                return []

    def _enter(self, kind: str) -> None:
        if kind != self._kind:
            self._kind = kind
            self._block += 1

    def _begin(self, name: str | None, arguments: str) -> AIMessageChunk:
        self._kind = "call"
        self._block += 1
        self._calls += 1
        self._arguments = []
        return self._call_chunk(name, arguments, _call_id())

    def _ruin(self, event: Invalid) -> AIMessageChunk:
        """Return the chunk of an invalid call, made so that LangChain does not repair it."""
        if broken := self.broken():
            return broken[0]
        chunk = self._begin(event.name, event.raw + unrepairable(event.raw))
        self._kind = ""
        return chunk

    def _call_chunk(self, name: str | None, arguments: str, number: str | None) -> AIMessageChunk:
        self._arguments.append(arguments)
        part = ToolCallChunk(name=name, args=arguments, id=number, index=self._calls, type="tool_call_chunk")
        return self._chunk(dict(part), tool_call_chunks=[part])

    def _chunk(self, block: dict[str, Any] | None = None, *, content: str = "", **fields: Any) -> AIMessageChunk:
        if self._logprobs:
            fields["response_metadata"] = with_logprobs(fields.get("response_metadata", {}), self._logprobs)
            self._logprobs.clear()
        if not self._as_blocks:
            return AIMessageChunk(content=content, **fields)
        # Blocks with one index become one block, whatever they are.
        blocks: list[str | dict[str, Any]] = [] if block is None else [block | {"index": self._block}]
        fields["response_metadata"] = {**fields.get("response_metadata", {}), "output_version": "v1"}
        return AIMessageChunk(content=blocks, **fields)


def unrepairable(text: str) -> str:
    """Return what to append to arguments that broke off, so that no reader of unfinished JSON takes them for JSON.

    >>> unrepairable('{"city": "Par')
    '"]'
    """
    inside = escaped = False
    closers: list[str] = []
    for character in text:
        if inside:
            inside = escaped or character != '"'
            escaped = not escaped and character == "\\"
        elif character == '"':
            inside = True
        elif character in "{[":
            closers.append("}" if character == "{" else "]")
        elif character in "}]" and closers and closers[-1] == character:
            closers.pop()
    wrong = "]" if closers and closers[-1] == "}" else "}"
    return ("\\" if escaped else "") + ('"' if inside else "") + wrong


def _call_id() -> str:
    return f"call_{uuid.uuid4().hex}"
