"""The engine's activity as JSON: what the page shows beside the chat, and reads every other second while it is seen.

A caller with a key sees its own requests one by one, and of all others only how many there are.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import Any

from langchain_gemma_jax.chat.asking.model_profile import profile_of
from langchain_gemma_jax.engine.api.live_view import LiveView, OpenRequest
from langchain_gemma_jax.engine.base.events import Finished, Tripped
from langchain_gemma_jax.engine.residency.model_status import ModelStatus
from langchain_gemma_jax.observe.latest import Latest
from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.wire.addresses import PATH

_CAN = {"images": "image_inputs", "tools": "tool_calling", "thinking": "reasoning_output"}


class LiveActivity:
    """Tells what the engine of this process does."""

    def __init__(self, models: ServedModels) -> None:
        self._models, self._latest = models, Latest()
        self._served: list[dict[str, Any]] | None = None

    def now(self, scope: str) -> dict[str, Any]:
        """Return the activity at this moment, for a caller with this scope. Not for an event loop: it reads files."""
        from langchain_gemma_jax.engine.api.process import engine

        running = engine()
        self._latest.follow(running)
        view, now = running.live(), time.monotonic()
        if self._served is None:
            self._served = [_served(name) for name in self._models.names]
        return {
            "version": str(getattr(sys.modules.get("langchain_gemma_jax"), "__version__", "")),
            "at": now,
            "calls": PATH.removeprefix("/"),
            "served": self._served,
            "others": self._models.others,
            **_counts(view),
            "models": [_model(each) for each in view.models],
            "evictions": [asdict(each) for each in view.evictions],
            "pools": [{"model": model, **asdict(pool)} for model, pool in view.pools],
            "requests": self._requests(view, scope, now),
            "trips": dict(running.guards.trips.by_kind),
            "latest_trips": [_trip(each, now) for each in self._latest.trips],
        }

    def _requests(self, view: LiveView, scope: str, now: float) -> list[dict[str, Any]]:
        shown = [_ended(each, now) for each in self._latest.finished if _is_within(each.scope, scope)]
        return [*shown, *(_open(each) for each in view.requests if _is_within(each.scope, scope))]


def _is_within(scope: str, callers: str) -> bool:
    """Return True if a request of a scope is the caller's."""
    return not callers or scope.startswith(f"{callers}/")


def _counts(view: LiveView) -> dict[str, Any]:
    running = sum(each.running for each in view.requests)
    return {
        "running": running,
        "waiting": len(view.requests) - running,
        "done": view.done,
        "failed": view.failed,
        "generated_tokens": view.generated_tokens,
        "prefilled_tokens": view.prefilled_tokens,
        "reused_tokens": view.reused_tokens,
    }


def _served(name: str) -> dict[str, Any]:
    profile = profile_of(name)
    can = {ability: profile.get(field) is not False for ability, field in _CAN.items()}
    return {"name": name, "max_input_tokens": profile.get("max_input_tokens"), **can}


def _model(status: ModelStatus) -> dict[str, Any]:
    found = asdict(status)
    return {**found, "state": str(status.state.value), "nbytes": status.nbytes}


def _open(request: OpenRequest) -> dict[str, Any]:
    return {**asdict(request), "ended_s_ago": None, "outcome": None}


def _ended(record: Finished, now: float) -> dict[str, Any]:
    times = record.timings
    return {
        "number": record.number,
        "model": record.model,
        "app": record.app,
        "running": False,
        "stage": "over",
        "prompt_tokens": record.prompt_tokens,
        "reused_tokens": record.reused_tokens,
        "read_tokens": record.prompt_tokens,
        "generated_tokens": record.generated_tokens,
        "queued_s": times.queued_s,
        "prefill_s": times.prefill_s,
        "first_token_s": times.first_token_s,
        "total_s": times.total_s,
        "ended_s_ago": max(0.0, now - record.at),
        "outcome": record.outcome,
        "failed": record.failed,
        "compiled": record.compiled,
    }


def _trip(record: Tripped, now: float) -> dict[str, Any]:
    return {
        "guard": record.guard,
        "reason": record.reason,
        "advice": record.advice,
        "model": record.model,
        "s_ago": max(0.0, now - record.at),
    }
