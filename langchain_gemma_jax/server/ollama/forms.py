"""The common forms of Ollama's API: lines of JSON, errors, times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from langchain_gemma_jax.server.http.problems import Problem

OF_OLLAMA = "/api/"  # the beginning of its paths
LINES = "application/x-ndjson"
NEVER = "9999-12-31T23:59:59Z"  # when a model leaves that stays

_encoded = json.JSONEncoder(separators=(",", ":")).encode  # made once: json.dumps makes one for each line


class OllamaForm:
    """Errors in the form of Ollama's API, each with this package's code beside it."""

    def body(self, problem: Problem) -> dict[str, Any]:
        """Return the body of a response that is an error."""
        return {"error": problem.message, "code": problem.code}

    def in_stream(self, problem: Problem) -> bytes:
        """Return the last line of a stream that broke off."""
        return line(self.body(problem))


def line(value: Mapping[str, Any]) -> bytes:
    """Return a line of a stream."""
    return _encoded(value).encode() + b"\n"


def time_text(at: float | None = None) -> str:
    """Return a time, in seconds since 1970, as Ollama writes it. None: now.

    >>> time_text(0)
    '1970-01-01T00:00:00Z'
    """
    moment = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
    return moment.isoformat().replace("+00:00", "Z")


def nanoseconds(seconds: float) -> int:
    """Return a duration as Ollama has it, at least 0."""
    return max(0, round(seconds * 1e9))
