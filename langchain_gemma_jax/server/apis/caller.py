"""Whoever asks: which models it may name, whose conversations it shares, how long it has."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from langchain_core.messages import AIMessageChunk, BaseMessage

from langchain_gemma_jax.chat.answering.messages_out import Chunks
from langchain_gemma_jax.chat.asking.options import SERVED, SETTINGS, Options, options
from langchain_gemma_jax.chat.calling.call import Call
from langchain_gemma_jax.chat.calling.live_answer import as_events, astream
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import InputError, UnknownModelError

_OF_OWNERS = (
    "dtype",
    "revision",
    "weights",
    "activations",
    "devices",
    "replicas",
    "keep_alive",
    "guards",
    "token",
)  # of a model that all callers share


@dataclass(frozen=True)
class ServedModels:
    """The models that a server has, by name; and whether whoever asks may name others."""

    names: tuple[str, ...]
    others: bool = False

    def named(self, name: str) -> str:
        """Return which model is meant.

        Raises:
            UnknownModelError: none of those that may be.
        """
        if name == SERVED:
            return self.names[0]
        if name in self.names:
            return name
        if os.path.isabs(name):  # noqa: PTH117  a folder, as clients on this machine name it from wherever they run
            for each in self.names:
                if os.path.abspath(os.path.expanduser(each)) == name:  # noqa: PTH100, PTH111
                    return each
        if self.others:
            return name
        raise UnknownModelError(
            f"This server has no model called {name[:200]!r}. It has: {', '.join(map(repr, self.names))}. Whoever runs "
            "it can serve others: gemma-jax serve MODEL, or --any-model."
        )


@dataclass(frozen=True)
class Caller:
    """Whoever asks, and what it may."""

    models: ServedModels
    scope: str = ""  # of the key that was shown
    clock: Clock = field(default_factory=Clock)  # of the request, since its head was there

    def checked(self, asked: Options) -> Options:
        """Return options as they are carried out: with models that are served, in the caller's own scope.

        Raises:
            InputError: they ask for what a caller may not.
        """
        if asked.trust_remote_code:
            raise InputError("trust_remote_code: nobody has code run in a server. Leave it out.")
        if not self.models.others:
            for name in _OF_OWNERS:
                if getattr(asked, name) is not None:
                    raise InputError(f"{name}: whoever runs this server decides about it. Leave it out.")
        route = asked.route
        if route is not None:
            for model in route.sizes.values():
                self.models.named(model)
        named = asked.model if route is not None else self.models.named(asked.model)
        scope = f"{self.scope}/{asked.scope}" if self.scope else asked.scope
        return replace(asked, model=named, scope=scope, timeout=self._left(asked.timeout))

    def _left(self, timeout: float | None) -> float | None:
        """Return how many seconds of a timeout are left: the request has been there for a while."""
        own = None if timeout is None else max(0.0, timeout - (time.monotonic() - self.clock.began))
        return min((each for each in (own, self.clock.left) if each is not None), default=None)

    def options(self, given: Mapping[str, Any]) -> Options:
        """Return the options of a call with these settings.

        Raises:
            InputError: they are not possible, or ask for what a caller may not.
        """
        return self.checked(options(dict.fromkeys(SETTINGS), None, given))


def answer_events(
    messages: Sequence[BaseMessage], asked: Options, message_id: str = ""
) -> AsyncGenerator[dict[str, Any], None]:
    """Give an answer as events: blocks that begin, grow and end."""
    return astream(messages, asked, Clock(asked.timeout), partial(as_events, message_id))


def answer_chunks(
    messages: Sequence[BaseMessage], asked: Options, *, as_blocks: bool
) -> AsyncGenerator[AIMessageChunk, None]:
    """Give an answer as the chunks of a message."""

    def chunks(call: Call) -> Chunks:
        return Chunks(call.spells_logprobs_with, as_blocks=as_blocks)

    return astream(messages, asked, Clock(asked.timeout), chunks)


class Api(Protocol):
    """One thing that can be asked of a server."""

    streams_as: str  # the content type of what is streamed

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]] | AsyncGenerator[bytes, None]:
        """Return the answer, whole or in the pieces of a stream.

        Raises:
            InputError: what is asked is not possible.
        """
