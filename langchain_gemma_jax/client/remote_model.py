"""A chat model whose engine is in another process: its answers, whole or in pieces, its errors and its counting."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import SecretStr

from langchain_gemma_jax.chat.answering.answer_parts import Shown, WholeAnswer
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.answerer import THIS_PROCESS, Answerer
from langchain_gemma_jax.chat.calling.continued import Continuation, TextEnd
from langchain_gemma_jax.chat.calling.starting import in_thread
from langchain_gemma_jax.client.exchange import WireRequest, aask, ask
from langchain_gemma_jax.client.sessions import session_of
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import EngineError, InputError, ServerError
from langchain_gemma_jax.models.configuration.embedded import embedded_folder
from langchain_gemma_jax.wire.addresses import Address, address_of
from langchain_gemma_jax.wire.answer_forms import shown_in, whole_in
from langchain_gemma_jax.wire.message_forms import messages_out, to_json
from langchain_gemma_jax.wire.option_forms import options_out, session_out
from langchain_gemma_jax.wire.text_forms import continuation_in, piece_in

T = TypeVar("T")


def answerer_at(server: str, key: SecretStr | None) -> Answerer:
    """Return the engine at an address, which may be the address of this process.

    Raises:
        InputError: ``server`` is no address.
    """
    address = address_of(server)
    return THIS_PROCESS if address is None else RemoteModel(address, None if key is None else key.get_secret_value())


@dataclass(frozen=True)
class RemoteModel:
    """A server, and the API key that calls to it carry."""

    address: Address
    key: str | None = field(default=None, repr=False)

    def answer(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> WholeAnswer:
        """Return a whole answer."""
        item = _only(list(ask(self._asked("answer", messages, options, clock))))
        return whole_in(self._as_named(item, options))

    async def aanswer(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> WholeAnswer:
        """Return a whole answer, without blocking the event loop."""
        asked = await in_thread(self._asked, "answer", messages, options, clock)
        async with aclosing(aask(asked)) as items:
            return whole_in(self._as_named(_only([each async for each in items]), options))

    def stream(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, shown: Shown[T]
    ) -> Generator[T, None, None]:
        """Yield an answer in the caller's form, as it arrives."""
        asked = self._asked("stream", messages, options, clock)
        with closing(ask(asked)) as items:
            try:
                for each in items:
                    yield from shown_in(self._as_named(each, options), shown)
            except EngineError:
                yield from shown.broken()
                raise

    async def astream(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, shown: Shown[T]
    ) -> AsyncGenerator[T, None]:
        """Yield an answer in the caller's form, as it arrives, without blocking the event loop."""
        asked = await in_thread(self._asked, "stream", messages, options, clock)
        async with aclosing(aask(asked)) as items:
            try:
                async for each in items:
                    for made in shown_in(self._as_named(each, options), shown):
                        yield made
            except EngineError:
                for made in shown.broken():
                    yield made
                raise

    async def aread_ahead(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> bool:
        """Have a prompt read while the server has nothing else to do. False: it was given up."""
        asked = await in_thread(self._asked, "ahead", messages, options, clock)
        async with aclosing(aask(asked)) as items:
            return _only([each async for each in items]).get("read") is True

    def count_tokens(self, messages: Sequence[BaseMessage], options: Options) -> int:
        """Return the number of tokens that a conversation has as a prompt."""
        asked = self._asked("count", messages, options, Clock(options.timeout))
        return int(_only(list(ask(asked)))["tokens"])

    def token_ids(self, text: str, options: Options) -> list[int]:
        """Return the ids of a text's tokens."""
        asked = self._asked("tokens", (), options, Clock(options.timeout), text=text)
        return [int(each) for each in _only(list(ask(asked)))["ids"]]

    def continued(self, texts: Sequence[str], suffix: str | None, options: Options, clock: Clock) -> list[Continuation]:
        """Return what follows each text."""
        asked = self._asked("texts", (), options, clock, texts=list(texts), suffix=suffix)
        return _continuations(_only(list(ask(asked))))

    async def acontinued(
        self, texts: Sequence[str], suffix: str | None, options: Options, clock: Clock
    ) -> list[Continuation]:
        """Return what follows each text, without blocking the event loop."""
        asked = await in_thread(partial(self._asked, "texts", (), options, clock, texts=list(texts), suffix=suffix))
        async with aclosing(aask(asked)) as items:
            return _continuations(_only([each async for each in items]))

    def continuing(
        self, text: str, suffix: str | None, options: Options, clock: Clock
    ) -> Generator[str | TextEnd, None, None]:
        """Yield what follows a text, as it arrives."""
        asked = self._asked("text", (), options, clock, texts=[text], suffix=suffix)
        with closing(ask(asked)) as items:
            yield from map(piece_in, items)

    async def acontinuing(
        self, text: str, suffix: str | None, options: Options, clock: Clock
    ) -> AsyncGenerator[str | TextEnd, None]:
        """Yield what follows a text, as it arrives, without blocking the event loop."""
        asked = await in_thread(partial(self._asked, "text", (), options, clock, texts=[text], suffix=suffix))
        async with aclosing(aask(asked)) as items:
            async for each in items:
                yield piece_in(each)

    def _asked(
        self, what: str, messages: Sequence[BaseMessage], options: Options, clock: Clock, **more: object
    ) -> WireRequest:
        local = self.address.is_local
        wire_options = options_out(options, local=local)
        wire_messages = messages_out(messages, options.media_folders or ())
        wire_options["model"] = _place(options.model, local=local)
        if "route" in wire_options:
            wire_options["route"] = {name: _place(model, local=local) for name, model in wire_options["route"].items()}
        if clock.left is not None:
            wire_options["timeout"] = clock.left
        if "route" in wire_options:  # a route goes on with the size that answered before
            for metadata in (each["response_metadata"] for each in wire_messages if "response_metadata" in each):
                if isinstance(name := metadata.get("model_name"), str):
                    metadata["model_name"] = _place(name, local=local)
        body = to_json({"messages": wire_messages, "options": wire_options, **more})
        session = session_out(options) or (None if local else session_of(wire_messages, options.scope))
        return WireRequest(self.address, what, body, self.key, clock.until, session)

    def _as_named(self, item: dict[str, Any], options: Options) -> dict[str, Any]:
        """Return an answer with the caller's names of models: a folder was sent as an absolute path."""
        for place, key in ((item, "model"), (item.get("metadata"), "model_name")):
            if isinstance(place, dict) and isinstance(shown := place.get(key), str) and os.path.isabs(shown):  # noqa: PTH117
                named = options.route.sizes.values() if options.route is not None else (options.model,)
                local = self.address.is_local
                place[key] = next((each for each in named if _place(each, local=local) == shown), shown)
        return item


def _continuations(item: dict[str, Any]) -> list[Continuation]:
    found = item.get("texts")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ServerError(f"The server sent no texts, where some were expected: {item!r:.200}.")
    return [continuation_in(each) for each in found]


def _only(items: list[dict[str, Any]]) -> dict[str, Any]:
    if len(items) != 1:
        raise ServerError(f"The server sent {len(items)} items, where one was expected. Is it of this version?")
    return items[0]


def _place(model: str, *, local: bool) -> str:
    """Return a model's name for a server. One on this machine gets absolute paths, as it may run in another folder.

    Raises:
        InputError: the name cannot be sent.
    """
    if "\0" in model:
        raise InputError(f"model: expected a folder or a model's id, found {model!r}.")
    folder = os.path.expanduser(model)  # noqa: PTH111  which never raises
    if not local or embedded_folder(model) is not None or not os.path.exists(folder):  # noqa: PTH110
        return model
    return os.path.abspath(folder)  # noqa: PTH100
