"""Errors of downloads from the Hub, translated to this package's errors.

huggingface_hub raises its own errors, those of its HTTP client, and plain ``OSError``. The client
depends on the release, so it is not named here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from langchain_gemma_jax.errors import (
    CorruptCheckpointError,
    GatedModelError,
    GemmaJaxError,
    HubError,
    ModelNotOnHubError,
)
from langchain_gemma_jax.models.hub.hub_request import HubRequest

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

MAY_PASS = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses that may pass: the request is sent again."""


class UnreachableError(Exception):
    """The Hub could not be reached, or gave no usable answer. The cache may have the model."""


@contextmanager
def explained(request: HubRequest) -> Iterator[None]:
    """Translate errors of huggingface_hub and its HTTP client to this package's errors and ``UnreachableError``."""
    from huggingface_hub.errors import HfHubHTTPError

    client_error = cast("type[Exception]", HfHubHTTPError.__mro__[1])  # the root of the HTTP client's errors
    try:
        yield
    except (OSError, client_error) as error:
        raise _explain(error, request) from error


def _explain(error: BaseException, request: HubRequest) -> GemmaJaxError | UnreachableError:
    from huggingface_hub import errors as hub

    match error:
        case hub.LocalEntryNotFoundError() | hub.DryRunError() if error.__cause__ is not None:
            return _explain(error.__cause__, request)
        case hub.HfHubHTTPError():
            return _explain_answer(error, request)
        case hub.OfflineModeIsEnabled():
            return UnreachableError("HF_HUB_OFFLINE was set when huggingface_hub was imported")
        case hub.FileMetadataError():
            return HubError(
                f"{request.site} does not answer as a Hub does. Check HF_ENDPOINT, and any proxy on the way."
            )
        case OSError(errno=int()) if not isinstance(error, ConnectionError | TimeoutError):
            return HubError(
                f"{request.model_id}: the cache, {request.cache}, cannot be used: {error.strerror}. "
                "Name another folder in HF_HUB_CACHE."
            )
        case OSError() if not isinstance(error, ConnectionError | TimeoutError | hub.LocalEntryNotFoundError):
            first_line = str(error).partition("\n")[0].rstrip(".")  # huggingface_hub's own count of what arrived
            return CorruptCheckpointError(
                request.model_id, "files of the sizes that the Hub announced", first_line, "Try again."
            )
    reason = str(error).partition("\n")[0]
    return UnreachableError(f"{request.site} cannot be reached ({type(error).__name__}: {reason})")


def _explain_answer(error: HfHubHTTPError, request: HubRequest) -> GemmaJaxError | UnreachableError:
    """Return the error for an HTTP status of 400 or more."""
    from huggingface_hub import errors as hub

    model, site, status = request.model_id, request.site, error.response.status_code
    match error:
        case hub.GatedRepoError():
            return _refused(request, f"{model} is gated: its license has to be accepted, by an account with a token")
        case hub.RepositoryNotFoundError():
            return ModelNotOnHubError(
                f"There is no model {model!r} on {site}; or it is private, and {_about_token(request)}. An id is "
                "spelled as at the top of the model's page, as in 'google/gemma-3-1b-it'."
            )
        case hub.RevisionNotFoundError():
            return ModelNotOnHubError(
                f"{model} has no revision {request.revision!r} on {site}: no such branch, tag or commit. "
                f"{site}/{model}/tree/main lists them."
            )
        case hub.DisabledRepoError():
            return ModelNotOnHubError(f"{model} was disabled on {site}: its files are no longer given out.")
    if status in {401, 403}:
        return _refused(request, f"{site} does not let you read {model} (HTTP {status})")
    if status in MAY_PASS:
        return UnreachableError(f"{site} is busy or broken (HTTP {status})")
    return HubError(f"{model}: {site} refused the request (HTTP {status}).")


def _refused(request: HubRequest, what: str) -> GatedModelError:
    return GatedModelError(
        f"{what}; and {_about_token(request)}.\n"
        f"1. Accept the license: {request.site}/{request.model_id}\n"
        f"2. Make a token that may read: {request.site}/settings/tokens\n"
        "3. Pass it: ChatGemmaJax(token='hf_...') or load_model(token='hf_...'); or in the environment variable "
        "HF_TOKEN; or once and for all: hf auth login"
    )


def _about_token(request: HubRequest) -> str:
    from huggingface_hub import get_token

    return "the token that was sent gives no access to it" if request.token or get_token() else "no token was sent"
