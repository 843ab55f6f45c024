"""Answers of a model as events of LangChain's streaming protocol: blocks that begin, grow and end."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from langchain_core.version import VERSION

from langchain_gemma_jax.chat.answering.answer_metadata import with_logprobs
from langchain_gemma_jax.chat.answering.answer_parts import AnswerEnd, AnswerPart
from langchain_gemma_jax.dialects import (
    ArgumentsDelta,
    CallBegin,
    CallEnd,
    Event,
    Invalid,
    TextDelta,
    ThoughtDelta,
    merged,
)
from langchain_gemma_jax.provider import PROVIDER

_TEXTS = {"text": "text", "reasoning": "reasoning"}  # a block's type -> the field that its deltas have
_SINCE = (1, 8)  # the langchain-core that reads a call's arguments in deltas
_BROKEN = "The answer ended before the call did. It is not to be executed."


def understood() -> bool:
    """Return True if the installed langchain-core reads these events. An older one makes its own from chunks."""
    return tuple(int(part) for part in VERSION.split(".")[:2]) >= _SINCE


class ProtocolEvents:
    """The message of an answer as events. The last one has its cost."""

    def __init__(self, message_id: str) -> None:
        self._id = message_id
        self._logprobs: list[Mapping[str, Any]] = []
        self._begun = False
        self._index = self._calls = -1
        self._block: dict[str, Any] = {}  # that is being written
        self._written: list[str] = []  # of it

    def of(self, part: AnswerPart) -> list[dict[str, Any]]:
        """Return what a part of the answer adds."""
        self._logprobs += part.logprobs
        return self._begun_by(self._of(part.events), part.model)

    def last(self, end: AnswerEnd) -> list[dict[str, Any]]:
        """Return what is left, and the message's end."""
        metadata = with_logprobs(end.metadata, self._logprobs)
        finish = {"event": "message-finish", "usage": end.usage, "metadata": metadata}
        return self._begun_by([*self._of(end.events), *self._end(), finish], end.metadata["model_name"])

    def broken(self) -> list[dict[str, Any]]:
        """Return the end of the call being written, after an error ended the answer; or nothing."""
        if self._block.get("type") != "tool_call_chunk":
            return []
        return [self._invalid("".join(self._written), _BROKEN)]

    def _begun_by(self, events: list[dict[str, Any]], model: str) -> list[dict[str, Any]]:
        if self._begun or not events:
            return events
        self._begun = True
        metadata = {"provider": PROVIDER, "model": model}
        return [{"event": "message-start", "role": "ai", "id": self._id, "metadata": metadata}, *events]

    def _of(self, events: Iterable[Event]) -> list[dict[str, Any]]:
        return list(chain.from_iterable(map(self._of_event, merged(events))))

    def _of_event(self, event: Event) -> list[dict[str, Any]]:
        match event:
            case TextDelta(text):
                return self._more("text", text)
            case ThoughtDelta(text):
                return self._more("reasoning", text)
            case CallBegin(name):
                return self._call(name)
            case ArgumentsDelta(text):
                self._written.append(text)
                return [self._delta({"type": "tool-call-delta", "args": text})]
            case CallEnd(arguments):
                known = {key: self._block[key] for key in ("id", "name")}
                return [self._finish({"type": "tool_call", **known, "args": dict(arguments)})]
            case Invalid(raw, error, name):
                begun = [] if self._block.get("type") == "tool_call_chunk" else self._call(name)
                return [*begun, self._invalid(raw, error)]

    def _more(self, kind: str, text: str) -> list[dict[str, Any]]:
        begun = [] if self._block.get("type") == kind else self._start({"type": kind, _TEXTS[kind]: ""})
        self._written.append(text)
        return [*begun, self._delta({"type": f"{kind}-delta", _TEXTS[kind]: text})]

    def _call(self, name: str | None) -> list[dict[str, Any]]:
        self._calls += 1
        number = f"call_{uuid.uuid4().hex}"
        return self._start({"type": "tool_call_chunk", "id": number, "name": name, "args": "", "index": self._calls})

    def _start(self, block: dict[str, Any]) -> list[dict[str, Any]]:
        before = self._end()
        self._index += 1
        self._block, self._written = block, []
        return [*before, {"event": "content-block-start", "index": self._index, "content": dict(block)}]

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"event": "content-block-delta", "index": self._index, "delta": delta}

    def _end(self) -> list[dict[str, Any]]:
        """Return the end of the text or the thoughts that are being written, if any are."""
        field = _TEXTS.get(self._block.get("type", ""))
        return [] if field is None else [self._finish(self._block | {field: "".join(self._written)})]

    def _invalid(self, raw: str, error: str) -> dict[str, Any]:
        known = {key: self._block[key] for key in ("id", "name")}
        return self._finish({"type": "invalid_tool_call", **known, "args": raw, "error": error})

    def _finish(self, block: dict[str, Any]) -> dict[str, Any]:
        self._block = {}
        return {"event": "content-block-finish", "index": self._index, "content": block}
