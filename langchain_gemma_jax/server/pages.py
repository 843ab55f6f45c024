"""Answers to GET: the page, health, readiness, metrics, models by OpenAI's names and by Ollama's."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import Any

from langchain_gemma_jax.chat.asking.model_profile import profile_of
from langchain_gemma_jax.chat.calling.starting import in_thread
from langchain_gemma_jax.errors import InstallationError
from langchain_gemma_jax.server.apis.caller import Caller, ServedModels
from langchain_gemma_jax.server.browser.browser_page import BrowserPage
from langchain_gemma_jax.server.browser.static_files import HOME, RUNNING
from langchain_gemma_jax.server.http.exchange import Exchange
from langchain_gemma_jax.server.http.open_calls import OpenCalls
from langchain_gemma_jax.server.http.problems import RequestError
from langchain_gemma_jax.server.ollama.lists import PAGES as OF_OLLAMA
from langchain_gemma_jax.server.readiness import Readiness
from langchain_gemma_jax.wire.addresses import OURS

PATHS = ("/health", "/ready", "/metrics", "/v1/models", HOME, *OF_OLLAMA)
_OPEN = {"/health", "/ready"}
_OF_ONE = "/v1/models/"
_STORE = {"/api/create", "/api/copy", "/api/delete", "/api/push"}  # Ollama's, which change what it has on the disk


class Pages:
    """Answers requests by GET and HEAD."""

    def __init__(
        self, models: ServedModels, readiness: Readiness, calls: OpenCalls, posts: Iterable[str], *, page: bool = True
    ) -> None:
        """``posts``: the paths of the APIs, which take POST. Errors list them. ``page``: there is one for browsers."""
        self._page = BrowserPage(models) if page else None
        self._models, self._readiness, self._calls, self._asked_by_post = models, readiness, calls, tuple(posts)
        self._since = int(time.time())

    def is_open(self, exchange: Exchange) -> bool:
        """Return True for what is answered without a key: whether the server is well, and the files of the page."""
        return exchange.path in _OPEN or (self._page is not None and self._page.is_open(exchange))

    async def answer(self, exchange: Exchange, caller: Caller, *, shows_all: bool) -> None:
        """Answer one request. ``shows_all``: False for a caller without a key, who sees only if the server is well.

        Raises:
            RequestError: there is no such page. InstallationError: prometheus-client, which /metrics needs, is not
                installed.
        """
        path, page = exchange.path, self._page if self._page is not None and self._page.has(exchange) else None
        if page is None:
            self._check_path(path)
        if exchange.method not in {"GET", "HEAD"}:
            raise RequestError(f"{path[:200]} is asked by GET, not by {exchange.method[:20]}.", 405, "no_such_method")
        if page is not None:
            await page.answer(exchange, caller)
        elif path == HOME:
            await exchange.send_text(RUNNING, "text/plain; charset=utf-8", headers={"vary": "accept"})
        elif path == "/health":
            await exchange.answer(self._health(shows_all=shows_all))
        elif path == "/ready":
            await self._ready(exchange, shows_all=shows_all)
        elif path == "/metrics":
            await exchange.send_text(*_metrics(exchange.headers.get("accept", "")))
        elif path in OF_OLLAMA:
            await exchange.answer(await in_thread(OF_OLLAMA[path], self._models))
        elif path == "/v1/models":
            await exchange.answer({"object": "list", "data": [self._model(name) for name in self._models.names]})
        else:
            await exchange.answer(self._model(self._models.named(path.removeprefix(_OF_ONE))))

    def _check_path(self, path: str) -> None:
        if path in PATHS or path.startswith(_OF_ONE):
            return
        known = ", ".join((*PATHS, *self._asked_by_post))
        ours = " Are client and server of one version of langchain-gemma-jax?" if path.startswith(OURS) else ""
        if path in _STORE:
            ours = " No client changes the models on a server's disk. There: gemma-jax models pull, and models rm."
        raise RequestError(f"There is no {path[:200]!r} here. There are {known}.{ours}", 404, "no_such_path")

    def _health(self, *, shows_all: bool) -> dict[str, Any]:
        found: dict[str, Any] = {"status": "ending" if self._calls.draining else "ok"}
        if shows_all:
            version = getattr(sys.modules.get("langchain_gemma_jax"), "__version__", "")
            found |= {"version": version, "process": os.getpid(), "open_calls": self._calls.count}
        return found

    async def _ready(self, exchange: Exchange, *, shows_all: bool) -> None:
        pending = self._readiness.pending
        ready = not pending and not self._calls.draining
        found: dict[str, Any] = {"ready": ready}
        if shows_all:
            found |= {"pending": pending, "ending": self._calls.draining}
        await exchange.answer(found, 200 if ready else 503)

    def _model(self, name: str) -> dict[str, Any]:
        found = {"id": name, "object": "model", "created": self._since, "owned_by": "langchain-gemma-jax"}
        if (most := profile_of(name).get("max_input_tokens")) is not None:
            found["max_input_tokens"] = most
        return found


def _metrics(accept: str) -> tuple[bytes, str]:
    """Return the metrics, and their form: OpenMetrics, which can link traces, for a caller that takes it."""
    try:
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.openmetrics import exposition as openmetrics
    except ImportError as error:
        raise InstallationError(
            "/metrics needs prometheus-client: pip install 'langchain-gemma-jax[metrics]'."
        ) from error
    from langchain_gemma_jax.observe.metrics.collector import MetricsCollector

    registry = CollectorRegistry()
    registry.register(MetricsCollector(vllm=True))
    if "application/openmetrics-text" in accept:
        write: Any = openmetrics.generate_latest
        return bytes(write(registry)), openmetrics.CONTENT_TYPE_LATEST
    return bytes(generate_latest(registry)), "text/plain; version=0.0.4; charset=utf-8"
