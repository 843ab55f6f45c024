"""The ASGI app: finds a request's API and caller, has it answered, and sends errors in that API's form."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Mapping

from langchain_gemma_jax.chat.calling.starting import abegin, in_thread, when_prepared
from langchain_gemma_jax.engine.host.error_names import named
from langchain_gemma_jax.engine.prefix_store.peer_http import PATH as KV_PATH
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import GemmaJaxError
from langchain_gemma_jax.private.freed_memory import give_back
from langchain_gemma_jax.server.apis.anthropic_answers import AnthropicCount, AnthropicForm, AnthropicMessages
from langchain_gemma_jax.server.apis.caller import Api, Caller, ServedModels
from langchain_gemma_jax.server.apis.chat_completions import ChatCompletions
from langchain_gemma_jax.server.apis.completions import Completions
from langchain_gemma_jax.server.apis.native import CALLS, Native, NativeForm
from langchain_gemma_jax.server.apis.openai_parts import OpenAIForm
from langchain_gemma_jax.server.apis.responses import Responses
from langchain_gemma_jax.server.browser.browser_page import ACTIVITY
from langchain_gemma_jax.server.embeddings_api import EmbeddingsApi
from langchain_gemma_jax.server.http.api_keys import ApiKeys
from langchain_gemma_jax.server.http.bodies import LARGE, Bodies, Body
from langchain_gemma_jax.server.http.exchange import ClientLeftError, ErrorForm, Exchange, Receive, Scope, Send, path_of
from langchain_gemma_jax.server.http.limits import ServerLimits
from langchain_gemma_jax.server.http.listening import is_loopback
from langchain_gemma_jax.server.http.open_calls import OpenCalls
from langchain_gemma_jax.server.http.problems import RequestError, ServerFailedError
from langchain_gemma_jax.server.offered_files import OfferedFiles
from langchain_gemma_jax.server.ollama.chat import OllamaChat
from langchain_gemma_jax.server.ollama.embed import OllamaEmbed, OllamaEmbeddings
from langchain_gemma_jax.server.ollama.forms import OF_OLLAMA, OllamaForm
from langchain_gemma_jax.server.ollama.generate import OllamaGenerate
from langchain_gemma_jax.server.ollama.lists import OllamaShow
from langchain_gemma_jax.server.ollama.pull import OllamaPull
from langchain_gemma_jax.server.pages import PATHS, Pages
from langchain_gemma_jax.server.readiness import Readiness
from langchain_gemma_jax.wire.addresses import DEADLINE, OURS, PATH

_log = logging.getLogger(__name__)

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z.-]+)(?::[0-9]{1,5})?")  # no other part of a URL


class GemmaJaxApp:
    """Serves the engine of this process over HTTP: an ASGI app, for any server of such apps.

        app = GemmaJaxApp(ServedModels(("sprout-m",)))

    Args:
        models: the models that are served.
        keys: the API keys of its callers. None: every program that can connect is answered.
        limits: the limits of a client's connections, requests and calls.
        readiness: loads the models and makes their programs. None: the app makes one, which begins when the app starts.
        open_metrics: answer ``/metrics`` without a key, too.
        page: have a page for browsers at ``/``. Its files need no key; all that it asks for does.
    """

    def __init__(
        self,
        models: ServedModels,
        keys: ApiKeys | None = None,
        limits: ServerLimits | None = None,
        readiness: Readiness | None = None,
        *,
        open_metrics: bool = False,
        page: bool = True,
    ) -> None:
        self.calls = OpenCalls()
        self._models, self._keys, self._limits = models, keys, limits or ServerLimits()
        self._bodies = Bodies(self._limits)
        self._open = {"/metrics"} if open_metrics else set()
        self.readiness = readiness or Readiness(models.names)
        native, openai, anthropic, ollama = NativeForm(), OpenAIForm(), AnthropicForm(), OllamaForm()
        self._apis: dict[str, tuple[Api, ErrorForm]] = {
            **{PATH + what: (Native(what), native) for what in CALLS},
            "/v1/chat/completions": (ChatCompletions(), openai),
            "/v1/completions": (Completions(), openai),
            "/v1/embeddings": (EmbeddingsApi(), openai),
            "/v1/responses": (Responses(), openai),
            "/v1/messages": (AnthropicMessages(), anthropic),
            "/v1/messages/count_tokens": (AnthropicCount(), anthropic),
            "/api/chat": (OllamaChat(), ollama),
            "/api/generate": (OllamaGenerate(), ollama),
            "/api/embed": (OllamaEmbed(), ollama),
            "/api/embeddings": (OllamaEmbeddings(), ollama),
            "/api/show": (OllamaShow(), ollama),
            "/api/pull": (OllamaPull(), ollama),
        }
        self._pages = Pages(models, self.readiness, self.calls, self._apis, page=page)
        self._prefixes = OfferedFiles()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or an event of the server's start or end."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:  # a websocket, which nothing here speaks
            await send({"type": "websocket.close", "code": 1003})

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            if (await receive())["type"] == "lifespan.startup":
                self.readiness.begin()
                await send({"type": "lifespan.startup.complete"})
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send, self._form_of(path_of(scope)), self._limits)
        try:
            try:
                await self._carry_out(exchange)
            except GemmaJaxError as error:
                await exchange.fail(error)
            except ClientLeftError:
                raise
            except Exception as error:  # noqa: BLE001  a client gets a response after any error
                # Neither the error's text nor an unknown path is logged: they are a tenant's.
                _log.error("a request of %s failed: %s", self._shown(exchange.path), named(error))
                await exchange.fail(
                    ServerFailedError(f"The server failed, and its log says how: {type(error).__name__}.")
                )
        except ClientLeftError:
            pass

    def _shown(self, path: str) -> str:
        return path if path in self._apis or path in {*PATHS, ACTIVITY} else "another path"

    def _form_of(self, path: str) -> ErrorForm:
        found = self._apis.get(path)
        if found is not None:
            return found[1]
        if path.startswith(OF_OLLAMA):
            return OllamaForm()
        return NativeForm() if path.startswith(OURS) else OpenAIForm()

    async def _carry_out(self, exchange: Exchange) -> None:
        exchange.check_head()
        if exchange.path.startswith(KV_PATH):  # replicas prove that they have the deployment's key, and need no other
            await self._prefixes.answer(exchange)
            return
        self._check_origin(exchange.headers)
        allowed = [each for each in (_deadline(exchange.headers), self._limits.call_s) if each is not None]
        clock = Clock(min(allowed, default=None))
        caller = Caller(self._models, self._scope_of(exchange), clock)
        found = self._apis.get(exchange.path)
        if found is None:
            await self._pages.answer(exchange, caller, shows_all=self._keys is None or bool(caller.scope))
            return
        if exchange.method != "POST":
            raise RequestError(
                f"{exchange.path} is asked by POST, not by {exchange.method[:20]}.", 405, "no_such_method"
            )
        with self.calls.one():
            async with self._bodies.body() as body:
                await exchange.receive_into(body, clock, self.calls)
                try:
                    await exchange.watched(self._reply(found[0], body, caller, exchange), self.calls)
                finally:
                    if body.size > LARGE:  # else the allocator keeps the memory of what was made of it
                        await in_thread(give_back)

    async def _reply(self, api: Api, body: Body, caller: Caller, exchange: Exchange) -> None:
        turn = self._bodies.turn(body, caller.clock)
        async with turn as end_turn:
            when_prepared(end_turn)
            caller.clock.parts.now("reading the request")
            reply = await abegin(lambda: api.reply(body.object(), caller), caller.clock)
            if isinstance(reply, AsyncGenerator):
                await exchange.stream(reply, api.streams_as)
            else:
                await exchange.answer(await reply)

    def _scope_of(self, exchange: Exchange) -> str:
        if self._keys is None:
            return ""
        try:
            return self._keys.scope_of(exchange.headers)
        except GemmaJaxError:
            if exchange.path in self._open or self._pages.is_open(exchange):
                return ""
            raise

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        """Refuse a request of a site's page in a browser on this machine: a server with keys alone answers those.

        A page is recognized by its ``Origin``, which is this server's own for the page that it has itself; or by a
        ``Host`` that is another name than localhost, as it is when a site's name was made to resolve to this machine.

        Raises:
            RequestError: the request may come from a page.
        """
        if self._keys is not None:
            return
        shown = headers.get("host", "localhost")
        host, origin = _HOST.fullmatch(shown), headers.get("origin")
        if host is None or not is_loopback(host[1]) or origin not in {None, f"http://{shown}"}:
            raise RequestError(
                "Other sites' pages in a browser, and requests to another name than localhost, are answered by a "
                "server with keys alone: gemma-jax serve --api-key-file FILE.",
                403,
                "forbidden_origin",
            )


def _deadline(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a call has, by its header; None if it has none.

    Raises:
        RequestError: the header holds no number of seconds.
    """
    header = headers.get(DEADLINE)
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 2**31:
        raise RequestError(f"{DEADLINE}: expected seconds from now, such as 30, found {header[:100]!r}.")
    return seconds
