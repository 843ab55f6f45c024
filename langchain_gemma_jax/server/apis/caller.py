"""The caller of an API: the models that it may name, the scope of its conversations, and its deadline."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from langchain_core.messages import BaseMessage

from langchain_gemma_jax.chat.asking.options import SERVED, Options, options
from langchain_gemma_jax.chat.calling.call import CallStart
from langchain_gemma_jax.chat.calling.starting import begin_here
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import InputError, UnknownModelError
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.routing.route import AUTO
from langchain_gemma_jax.settings.table import SETTINGS

_OWNED = (*(name for name, setting in SETTINGS.items() if setting.owned), "token")  # all callers share these


@dataclass(frozen=True)
class ServedModels:
    """The names of a server's models. ``others``: callers may name other models, too."""

    names: tuple[str, ...]
    others: bool = False
    defaults: Mapping[str, object] = field(default_factory=dict)  # settings, for callers who say nothing else

    @property
    def how(self) -> HowToLoad:
        """The way to load models for callers who say nothing else."""
        known = {each.name for each in fields(HowToLoad)}
        return HowToLoad.of({name: value for name, value in self.defaults.items() if name in known})

    @property
    def stored(self) -> dict[str, object]:
        """All settings as a model has them: those that are set for all callers, and no others."""
        return dict.fromkeys(SETTINGS) | dict(self.defaults)

    def named(self, name: str) -> str:
        """Return the model that a caller's name stands for.

        Raises:
            UnknownModelError: the name is none of those that the caller may use.
        """
        if name == SERVED:
            return self.names[0]
        if name in self.names:
            return name
        if os.path.isabs(name):  # noqa: PTH117  a folder: clients on this machine send absolute paths
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
    """The caller of one request, with its permissions and its deadline."""

    models: ServedModels
    scope: str = ""  # of the caller's API key
    clock: Clock = field(default_factory=Clock)  # of the request, from the arrival of its head

    def checked(self, asked: Options) -> Options:
        """Return options that are safe to run: with models that are served, in the caller's own scope.

        Raises:
            InputError: an option is one that callers may not set. UnknownModelError: a model is not served.
        """
        if asked.trust_remote_code:
            raise InputError("trust_remote_code: a server runs no code of a model. Leave it out.")
        if not self.models.others:
            for name in _OWNED:
                if getattr(asked, name) not in (None, self.models.defaults.get(name)):
                    raise InputError(f"{name}: the operator of this server decides about it. Leave it out.")
        route = asked.route
        if route is not None:
            for model in route.sizes.values():
                self.models.named(model)
        routed = route is not None and asked.model in {AUTO, *route.sizes}
        named = asked.model if routed else self.models.named(asked.model)
        scope = f"{self.scope}/{asked.scope}" if self.scope else asked.scope
        return asked.model_copy(update={"model": named, "scope": scope, "timeout": self._left(asked.timeout)})

    def _left(self, timeout: float | None) -> float | None:
        """Return the seconds left of a timeout that began when the request's head arrived."""
        own = None if timeout is None else max(0.0, timeout - (time.monotonic() - self.clock.began))
        return min((each for each in (own, self.clock.left) if each is not None), default=None)

    def options(self, given: Mapping[str, Any]) -> Options:
        """Return the options of a call with these settings.

        Raises:
            InputError: a setting is not possible, or is one that callers may not set.
        """
        return self.checked(options(self.models.stored, None, given))

    def begin(self, messages: Sequence[BaseMessage], asked: Options) -> CallStart:
        """Begin a call in this thread, which has read the request: the engine has it when this returns.

        Raises:
            InputError, ContextLengthError, DeadlineError: as ``chat.calling.starting.start`` has them.
        """
        return begin_here(CallStart(messages, asked, Clock(asked.timeout)))


class Api(Protocol):
    """One API of a server."""

    streams_as: str  # the content type of its streams

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]] | AsyncGenerator[bytes, None]:
        """Begin to answer, in this thread, and return the answer: whole, or in the pieces of a stream.

        Raises:
            InputError: a field is unknown, or its value is not possible.
        """
