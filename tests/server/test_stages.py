"""Every stage of a call ends when its time is up, when its client leaves and when the process ends.

A stage of these tests never ends by itself: it goes through pieces for ever, and looks as the real ones do. That those
look is the second half of this file.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra [serve]")

from langchain_core.messages import HumanMessage

from langchain_gemma_jax import stopping
from langchain_gemma_jax.bounded_json import WINDOW, bounded_loads
from langchain_gemma_jax.chat.calling import call, ready_model
from langchain_gemma_jax.chat.history.history import History
from langchain_gemma_jax.chat.history.media_in import MediaPlacing
from langchain_gemma_jax.chat.history.messages_in import conversation
from langchain_gemma_jax.dialects import Message, ModelFacts, RenderedPrompt, Tool, dialect_for, grammar_for
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptPiece, PromptWriter
from langchain_gemma_jax.server import embeddings_api, running
from langchain_gemma_jax.server.apis import anthropic_messages, chat_completions, response_items
from langchain_gemma_jax.server.apis.chat_messages import chat_messages
from langchain_gemma_jax.server.http import bodies
from langchain_gemma_jax.stopping import EVERY, Stop, StoppedError, end_with_process, looking
from langchain_gemma_jax.wire.message_forms import messages_in
from tests.dialects.vocabulary import tokenizer
from tests.serving import asked, connected, serving

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
SHOWN = CHAT | {
    "messages": [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]}
    ]
}
COUNTED = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
STAGES: dict[str, tuple[str, dict[str, Any], Any, str]] = {
    "reading": ("/v1/chat/completions", CHAT, bodies, "bounded_loads"),
    "converting": ("/v1/chat/completions", CHAT, chat_completions, "chat_messages"),
    "converting Anthropic's": (
        "/v1/messages",
        COUNTED | {"max_tokens": 9},
        anthropic_messages,
        "anthropic_conversation",
    ),
    "converting responses": ("/v1/responses", {"model": "m", "input": "Hi"}, response_items, "response_input"),
    "the conversation": ("/v1/chat/completions", CHAT, call, "conversation"),
    "rendering": ("/v1/chat/completions", CHAT, PromptWriter, "control"),
    "encoding": ("/v1/chat/completions", CHAT, RenderedPrompt, "encode"),
    "encoding to count": ("/v1/messages/count_tokens", COUNTED, RenderedPrompt, "encode"),
    "pictures": ("/v1/chat/completions", SHOWN, MediaPlacing, "placed"),
    "the grammar": ("/v1/chat/completions", CHAT, ready_model, "grammar_of"),
    "texts for vectors": ("/v1/embeddings", {"model": "m", "input": "Hi"}, embeddings_api, "vectors_of"),
}


@dataclass
class Endless:
    """A stage that goes through pieces until it is stopped."""

    pieces: int = 0
    begun: threading.Event = field(default_factory=threading.Event)
    stopped: threading.Event = field(default_factory=threading.Event)
    thread: str = ""

    def __call__(self, *_: object, **__: object) -> Any:
        self.thread = threading.current_thread().name
        try:
            for self.pieces in looking(itertools.count(1)):
                if self.pieces == 2 * EVERY:
                    self.begun.set()
        except StoppedError:
            self.stopped.set()
            raise


@pytest.fixture
def ending(monkeypatch) -> Callable[[], None]:
    """The end of the process, of which nothing is left for other tests."""
    monkeypatch.setattr(stopping, "_works", stopping._Works())
    return end_with_process


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_ends_at_the_deadline_when_the_client_leaves_and_with_the_process(stage, says, ending, monkeypatch):
    says()
    path, body, place, name = STAGES[stage]
    with serving(None) as server:
        at = server.listening.shown
        for cause, status in (("deadline", b" 504 "), ("disconnect", b""), ("end of the process", b" 503 ")):
            endless = Endless()
            monkeypatch.setattr(place, name, endless)
            data = json.dumps(body).encode()
            deadline = "X-Deadline-S: 0.5\r\n" if cause == "deadline" else ""
            with connected(at) as line:
                line.settimeout(None)
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{deadline}Content-Length: {len(data)}\r\n\r\n"
                line.sendall(head.encode() + data)
                endless.begun.wait()
                if cause == "disconnect":
                    line.close()
                else:
                    if cause == "end of the process":
                        ending()
                    assert status in line.recv(65536)
            endless.stopped.wait()
            assert endless.pieces % EVERY == 0, "it was stopped where it looks"
            assert endless.thread == "gemma-jax-call", "it was not in the event loop's way"
        while server.app.calls.count:
            threading.Event().wait(0.01)
        assert asked(at, "/health")[0] == 200
        assert server.app._bodies.held == 0


@pytest.mark.parametrize("cause", ["deadline", "end of the server"])
def test_a_request_that_never_arrives_whole_ends_too(cause, says, monkeypatch):
    says()
    monkeypatch.setattr(running, "AFTER_DRAIN", 600)
    with serving(None) as server, connected(server.listening.shown) as line:
        line.settimeout(None)
        deadline = "X-Deadline-S: 0.3\r\n" if cause == "deadline" else ""
        head = f"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{deadline}Content-Length: 99"
        line.sendall(f"{head}\r\n\r\n{{".encode())
        if cause == "end of the server":
            while not server.app.calls.count:
                threading.Event().wait(0.01)
            server.end()
        found = b""
        while data := line.recv(65536):
            found += data
        assert b" 504 " in found
        assert b'"timeout_error"' in found


# The real ones.


class Looks(Stop):
    """A stop that counts how often it is looked at, and is asked for at one of those."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self.most, self.count = most, 0

    def check(self) -> None:
        self.count += 1
        if self.count == self.most:
            self.ask()
        super().check()


def rendered(count: int) -> RenderedPrompt:
    return RenderedPrompt(tuple(PromptPiece("a") for _ in range(count)))


def schema(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(count)}}


def spoken(count: int) -> list[Message]:
    return [Message.user("a") if number % 2 == 0 else Message.assistant("b") for number in range(count)]


def grammar(count: int) -> None:
    tools = [Tool(f"f{number}", "", schema(1)) for number in range(count)]
    grammar_for(tools, "auto", True, DIALECT)


DIALECT = dialect_for(ModelFacts("gemma4", tokenizer().control_tokens))
OLD_DIALECT = dialect_for(ModelFacts("gemma3", tokenizer().control_tokens), "gemma")
REAL: dict[str, tuple[Callable[[int], object], int]] = {  # what goes through so many pieces, and a look for how many
    "reading": (lambda count: bounded_loads(b'["' + b"a" * (count * WINDOW) + b'"]'), 1),
    "converting": (lambda count: chat_messages([{"role": "user", "content": "a"}] * count), EVERY),
    "converting blocks": (
        lambda count: chat_messages([{"role": "user", "content": [{"type": "text", "text": "a"}] * count}]), EVERY,
    ),
    "converting Anthropic's": (
        lambda count: anthropic_messages.anthropic_conversation("", [{"role": "user", "content": "a"}] * count), EVERY,
    ),
    "converting responses": (
        lambda count: response_items.response_input(None, [{"role": "user", "content": "a"}] * count), EVERY,
    ),
    "converting our own": (lambda count: messages_in([{"type": "human", "content": "a"}] * count), EVERY),
    "the conversation": (lambda count: conversation([HumanMessage("a")] * count), EVERY),
    "what was generated": (lambda count: History("", spoken(count)), EVERY),
    "rendering": (lambda count: DIALECT.render(spoken(count)), EVERY),
    "rendering of old": (lambda count: OLD_DIALECT.render(spoken(count)), EVERY),
    "encoding": (lambda count: rendered(count).encode(tokenizer()), EVERY),
    "encoding one text": (lambda count: tokenizer().encode_text("ab " * (count << 14)), 4),
    "the grammar": (grammar, 1),
}  # fmt: skip


@pytest.mark.parametrize("stage", REAL)
def test_a_stage_looks_every_few_pieces_and_does_no_more_when_it_is_to_end(stage):
    work, every = REAL[stage]
    count = 6 * every if every > 1 else 12
    stop = Looks()
    with stop.over_this_work():
        work(count)
    assert stop.count >= count // every, "it looks often enough"
    stop = Looks(3)
    with stop.over_this_work(), pytest.raises(StoppedError):
        work(count)
    assert stop.count == 3, "nothing went on behind it"


# Nothing grows faster than what is sent.


class Mark(int):
    """A number that counts with how many others it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Mark.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_the_tokens_at_marks_are_counted_without_comparing_each_piece_with_each_mark():
    for count in (1000, 4000):
        Mark.compared = 0
        pieces = tuple(PromptPiece("<turn|>", is_control=True) for _ in range(count))
        found = RenderedPrompt(pieces, marks=tuple(map(Mark, range(count)))).encode(tokenizer())
        assert found.marks == tuple(range(count))
        assert Mark.compared <= 8 * count


def test_text_that_is_written_in_pieces_is_joined_once(monkeypatch):
    out = PromptWriter()
    for _ in range(1000):
        out.text("a")
    assert not out._pieces
    assert [piece.text for piece in out.pieces] == ["a" * 1000]
    out.text("b")
    assert [piece.text for piece in out.pieces] == ["a" * 1000, "b"]
