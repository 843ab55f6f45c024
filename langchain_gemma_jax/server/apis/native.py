"""The API of this package's own client: one call's messages and all of its options, without any loss."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import CallStart
from langchain_gemma_jax.chat.calling.continued import acontinued, acontinuing
from langchain_gemma_jax.chat.calling.live_answer import astream, awhole_answer
from langchain_gemma_jax.chat.calling.reading_ahead import aread_ahead
from langchain_gemma_jax.chat.calling.starting import abegin
from langchain_gemma_jax.chat.calling.token_counting import count_tokens, token_ids
from langchain_gemma_jax.engine.host.warning_sink import warning_sink
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.fields import as_list, as_text
from langchain_gemma_jax.server.http.problems import Problem
from langchain_gemma_jax.wire.answer_forms import WireParts, whole_out
from langchain_gemma_jax.wire.error_forms import error_out
from langchain_gemma_jax.wire.message_forms import messages_in
from langchain_gemma_jax.wire.option_forms import options_in
from langchain_gemma_jax.wire.text_forms import continuation_out, piece_out
from langchain_gemma_jax.wire.warning_forms import warning_out

_encoded = json.JSONEncoder(separators=(",", ":")).encode  # made once: json.dumps makes one for each chunk

LINES = "application/x-ndjson"
_END = b'{"end":true}\n'


class NativeForm:
    """Errors by name and arguments, from which a client makes the same errors."""

    def body(self, problem: Problem) -> dict[str, Any]:
        """Return the body of a response that is an error."""
        return {"error": error_out(problem.error)}

    def in_stream(self, problem: Problem) -> bytes:
        """Return the last line of a stream that broke off."""
        return _line(self.body(problem))


@dataclass(frozen=True)
class NativeRequest:
    """What a client sent, read and checked."""

    body: dict[str, Any]
    messages: Sequence[BaseMessage]
    asked: Options
    caller: Caller


class Native:
    """One of the client's calls. Its answer is lines of JSON, and a last line that marks the end."""

    streams_as = LINES

    def __init__(self, what: str) -> None:
        self._begin = _BY_NAME[what]

    def reply(self, body: dict[str, Any], caller: Caller) -> AsyncGenerator[bytes, None]:
        """Begin to answer, in this thread, and return the lines of the answer, as they are made.

        Raises:
            InputError: the messages or the options are not possible.
        """
        heard: deque[Warning] = deque()
        warning_sink.set(heard.append)  # in this thread's copy of the context
        messages = messages_in(body.get("messages"))
        asked = caller.checked(options_in(body.get("options"), caller.models.stored))
        return _lines(heard, self._begin(NativeRequest(body, messages, asked, caller)))


async def _lines(heard: deque[Warning], items: AsyncGenerator[dict[str, Any], None]) -> AsyncGenerator[bytes, None]:
    warning_sink.set(heard.append)  # in this request's task, so that its warnings go to its caller
    async with aclosing(items):
        async for each in items:
            yield _lines_of(heard) + _line(each)
    yield _lines_of(heard) + _END


def _answer(sent: NativeRequest) -> AsyncGenerator[dict[str, Any], None]:
    return _whole(sent.caller.begin(sent.messages, sent.asked))


async def _whole(begun: CallStart) -> AsyncGenerator[dict[str, Any], None]:
    yield whole_out(await awhole_answer(begun))


def _stream(sent: NativeRequest) -> AsyncGenerator[dict[str, Any], None]:
    return astream(sent.caller.begin(sent.messages, sent.asked), WireParts())


def _ahead(sent: NativeRequest) -> AsyncGenerator[dict[str, Any], None]:
    return _read_ahead(sent.caller.begin(sent.messages, sent.asked.reading_ahead))


async def _read_ahead(begun: CallStart) -> AsyncGenerator[dict[str, Any], None]:
    yield {"read": await aread_ahead(begun)}


def _count(sent: NativeRequest) -> AsyncGenerator[dict[str, Any], None]:
    return _found("tokens", partial(count_tokens, sent.messages, sent.asked), sent.asked)


def _tokens(sent: NativeRequest) -> AsyncGenerator[dict[str, Any], None]:
    return _found("ids", partial(token_ids, _text(sent.body, "text"), sent.asked), sent.asked)


def _texts(sent: NativeRequest) -> AsyncGenerator[dict[str, Any], None]:
    texts, suffix = _given_texts(sent.body), _suffix(sent.body)
    return _continued(texts, suffix, sent.asked)


async def _continued(texts: list[str], suffix: str | None, asked: Options) -> AsyncGenerator[dict[str, Any], None]:
    found = await acontinued(texts, suffix, asked, Clock(asked.timeout))
    yield {"texts": [continuation_out(each) for each in found]}


def _one_text(sent: NativeRequest) -> AsyncGenerator[dict[str, Any], None]:
    texts, suffix = _given_texts(sent.body), _suffix(sent.body)
    if len(texts) != 1:
        raise InputError(f"texts: expected one, found {len(texts)}.")
    return _continuing(texts[0], suffix, sent.asked)


async def _continuing(text: str, suffix: str | None, asked: Options) -> AsyncGenerator[dict[str, Any], None]:
    coming = acontinuing(text, suffix, asked, Clock(asked.timeout))
    async with aclosing(coming) as pieces:
        async for piece in pieces:
            yield piece_out(piece)


def _given_texts(body: dict[str, Any]) -> list[str]:
    return [as_text(each, f"texts[{number}]") for number, each in enumerate(as_list(body.get("texts"), "texts"))]


def _suffix(body: dict[str, Any]) -> str | None:
    return None if body.get("suffix") is None else as_text(body["suffix"], "suffix")


_BY_NAME: Mapping[str, Callable[[NativeRequest], AsyncGenerator[dict[str, Any], None]]] = {
    "answer": _answer,
    "stream": _stream,
    "ahead": _ahead,
    "count": _count,
    "tokens": _tokens,
    "texts": _texts,
    "text": _one_text,
}
CALLS = tuple(_BY_NAME)


async def _found(name: str, count: Callable[[], object], asked: Options) -> AsyncGenerator[dict[str, Any], None]:
    yield {name: await abegin(count, Clock(asked.timeout))}


def _text(body: dict[str, Any], name: str) -> str:
    if not isinstance(value := body.get(name), str):
        raise InputError(f"{name}: expected a string, found {type(value).__name__}.")
    return value


def _lines_of(heard: deque[Warning]) -> bytes:
    """Return the lines of the warnings that came since the last call, and drop these."""
    return b"".join(_line({"warning": warning_out(heard.popleft())}) for _ in range(len(heard)))


def _line(item: dict[str, Any]) -> bytes:
    return _encoded(item).encode() + b"\n"
