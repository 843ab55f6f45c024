"""The pages of a server: its health, its readiness, its metrics and its models."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import Any

from langchain_gemma_jax.chat.asking.model_profile import profile_of
from langchain_gemma_jax.errors import InstallationError
from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.http.exchange import Exchange
from langchain_gemma_jax.server.http.open_calls import OpenCalls
from langchain_gemma_jax.server.http.problems import RequestError
from langchain_gemma_jax.server.readiness import Readiness
from langchain_gemma_jax.wire.addresses import OURS

PATHS = ("/health", "/ready", "/metrics", "/v1/models")
_OF_ONE = "/v1/models/"


class Pages:
    """Answers requests by GET and HEAD."""

    def __init__(self, models: ServedModels, readiness: Readiness, calls: OpenCalls, posts: Iterable[str]) -> None:
        """``posts``: the paths of the APIs, which take POST. Errors list them."""
        self._models, self._readiness, self._calls, self._asked_by_post = models, readiness, calls, tuple(posts)
        self._since = int(time.time())

    async def answer(self, exchange: Exchange, *, shows_all: bool) -> None:
        """Answer one request. ``shows_all``: False for a caller without a key, who sees only if the server is well.

        Raises:
            RequestError: there is no such page. InstallationError: prometheus-client, which /metrics needs, is not
                installed.
        """
        path = exchange.path
        if path not in PATHS and not path.startswith(_OF_ONE):
            known = ", ".join((*PATHS, *self._asked_by_post))
            ours = " Are client and server of one version of langchain-gemma-jax?" if path.startswith(OURS) else ""
            raise RequestError(f"There is no {path[:200]!r} here. There are {known}.{ours}", 404, "no_such_path")
        if exchange.method not in {"GET", "HEAD"}:
            raise RequestError(f"{path[:200]} is asked by GET, not by {exchange.method[:20]}.", 405, "no_such_method")
        if path == "/health":
            await exchange.answer(self._health(shows_all=shows_all))
        elif path == "/ready":
            await self._ready(exchange, shows_all=shows_all)
        elif path == "/metrics":
            await exchange.send_text(_metrics(), "text/plain; version=0.0.4; charset=utf-8")
        elif path == "/v1/models":
            await exchange.answer({"object": "list", "data": [self._model(name) for name in self._models.names]})
        else:
            await exchange.answer(self._model(self._models.named(path.removeprefix(_OF_ONE))))

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


def _metrics() -> bytes:
    try:
        from prometheus_client import CollectorRegistry, generate_latest
    except ImportError as error:
        raise InstallationError(
            "/metrics needs prometheus-client: pip install 'langchain-gemma-jax[metrics]'."
        ) from error
    from langchain_gemma_jax.observe.metrics.collector import MetricsCollector

    registry = CollectorRegistry()
    registry.register(MetricsCollector(vllm=True))
    return bytes(generate_latest(registry))
