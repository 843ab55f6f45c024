"""Errors in HTTP: a status, a code and a message. Each API has its own form around these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from langchain_gemma_jax import errors
from langchain_gemma_jax.chat.answering.cut_off import CutOffError
from langchain_gemma_jax.errors import GemmaJaxError, InputError


class RequestError(InputError):
    """A request that the server refuses before any API reads it: unknown path, no JSON, too large, too slow."""

    def __init__(self, message: str, status: int = 400, code: str = "invalid_request") -> None:
        self.status, self.code = status, code
        super().__init__(message)


class ServerFailedError(GemmaJaxError):
    """An unexpected exception in the server."""


@dataclass(frozen=True)
class Problem:
    """An error as a response has it."""

    status: int
    code: str
    message: str
    error: GemmaJaxError
    headers: Mapping[str, str] = field(default_factory=dict)


# The first kind that fits counts. `x-should-retry` keeps clients from retrying where that cannot help.
_STATUSES: tuple[tuple[type[GemmaJaxError], int, str], ...] = (
    (errors.ContextLengthError, 400, "context_length_exceeded"),
    (errors.UnknownModelError, 404, "model_not_found"),
    (errors.ModelNotOnHubError, 404, "model_not_found"),
    (errors.CheckpointNotFoundError, 404, "model_not_found"),
    (errors.SchemaError, 400, "invalid_schema"),
    (errors.UnsupportedModelError, 400, "unsupported_model"),
    (errors.InputError, 400, "invalid_request"),
    (errors.ApiKeyError, 401, "invalid_api_key"),
    (errors.GatedModelError, 403, "gated_model"),
    (errors.HubError, 503, "hub_unreachable"),
    (errors.BusyError, 429, "busy"),
    (errors.DeadlineError, 504, "deadline_exceeded"),
    (errors.DeviceMemoryError, 503, "out_of_memory"),
    (errors.ClosedError, 503, "closing"),
    (errors.HostLostError, 503, "host_lost"),
    (errors.CancelledRequestError, 503, "cancelled"),
    (errors.GuardError, 500, "guard_tripped"),
    (CutOffError, 500, "cut_off"),
    (errors.CheckpointError, 500, "model_unusable"),
    (errors.GemmaJaxError, 500, "engine_error"),
)
_AGAIN_AFTER = {"busy": "1", "closing": "2", "out_of_memory": "2", "host_lost": "10"}  # seconds


def problem_of(error: GemmaJaxError) -> Problem:
    """Return the status, the code, the message and the headers of an error's response."""
    if isinstance(error, RequestError):
        # The rest of a request that was not read to its end would be taken for the next request.
        headers = {"connection": "close"} if error.status in {408, 413} else {}
        return Problem(error.status, error.code, str(error), InputError(str(error)), headers)
    status, code = next((status, code) for kind, status, code in _STATUSES if isinstance(error, kind))
    headers = {"retry-after": _AGAIN_AFTER[code]} if code in _AGAIN_AFTER else {}
    if not error.is_retryable or code == "deadline_exceeded":
        headers["x-should-retry"] = "false"
    return Problem(status, code, str(error), error, headers)
