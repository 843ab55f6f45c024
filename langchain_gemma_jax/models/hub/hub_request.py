"""A checked request to the Hub: a valid id, revision and token, the endpoint and the cache.

Endpoint and cache come from huggingface_hub's environment variables at the time of the call:
``HF_ENDPOINT``, ``HF_HUB_CACHE``, ``HF_HOME``, ``HF_HUB_OFFLINE`` and ``HF_HUB_ETAG_TIMEOUT``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib.abc import Loader
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import cast
from urllib.parse import urlsplit, urlunsplit

from langchain_gemma_jax.errors import InputError

_ID_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_ID = re.compile(rf"{_ID_PART}/{_ID_PART}")
_NOT_IN_ID = re.compile(r"--|\.\.|\.git\Z")
_NOT_IN_REVISION = re.compile(r"^\Z|^[-/]|/\Z|//|\.\.|(^|/)\.|[\x00-\x20\x7f~^:?*\[\\]")  # what git refuses in a name
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+ -]{0,200}")
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class HubRequest:
    """A model at a revision, with the token, the endpoint and the cache of the request."""

    model_id: str
    revision: str
    token: str | None = field(repr=False)
    endpoint: str = field(repr=False)  # it can hold a password
    cache: Path
    offline: bool
    timeout: float  # seconds until an answer has to begin
    file: str | None = None  # the name of a GGUF file, or its quantization
    is_adapter: bool = False  # True: an adapter is wanted, and no model

    @property
    def site(self) -> str:
        """The endpoint without credentials, for messages."""
        url = urlsplit(self.endpoint)
        return urlunsplit(url._replace(netloc=url.netloc.rpartition("@")[2]))

    @property
    def is_pinned(self) -> bool:
        """True if the revision is a commit, whose content never changes."""
        return is_commit(self.revision)


def make_request(
    model_id: object, revision: object, token: str | None, file: str | None = None, *, is_adapter: bool = False
) -> HubRequest:
    """Return a request, after a check of the arguments and the environment.

    Raises:
        InputError: one of them is malformed.
    """
    if not isinstance(model_id, str) or not is_model_id(model_id):
        raise InputError(
            "A model's id is organization/name, both of letters, digits, '-', '_' and '.', as in "
            f"'google/gemma-3-1b-it'. Found {model_id!r}."
        )
    if revision is None:
        revision = "main"
    if not isinstance(revision, str) or _NOT_IN_REVISION.search(revision):
        raise InputError(f"revision: expected a branch, a tag or a commit, as in 'main', found {revision!r}.")
    if file is not None and not _FILE.fullmatch(file):
        raise InputError(f"expected a GGUF file or a quantization after the id, as in ':Q8_0', found {file!r}.")
    if token is not None:
        token = token.strip()
        check_token(token)
    now = _constants()
    if urlsplit(now.ENDPOINT).scheme not in {"http", "https"}:
        raise InputError("HF_ENDPOINT: expected a URL such as https://huggingface.co, found one without http or https.")
    return HubRequest(
        model_id=model_id,
        revision=revision,
        token=token,
        endpoint=now.ENDPOINT,
        cache=Path(now.HF_HUB_CACHE).absolute(),
        offline=now.HF_HUB_OFFLINE,
        timeout=now.HF_HUB_ETAG_TIMEOUT,
        file=file,
        is_adapter=is_adapter,
    )


def is_model_id(text: str) -> bool:
    """Return True if this has the form of an id: ``organization/name``."""
    return _ID.fullmatch(text) is not None and _NOT_IN_ID.search(text) is None


def is_commit(revision: str) -> bool:
    """Return True for a full commit hash."""
    return _COMMIT.fullmatch(revision) is not None


def check_token(token: str) -> None:
    """Refuse a token that cannot be sent. The HTTP client would refuse it too, but show it in its error.

    Raises:
        InputError: it is not one line of printable ASCII.
    """
    if not _TOKEN.fullmatch(token):
        raise InputError(
            "token: expected a Hub token, as in 'hf_...': printable ASCII without spaces. "
            "Found something else, which is not shown here."
        )


def _constants() -> ModuleType:
    """Return huggingface_hub's constants for the environment variables of now, not those at its import."""
    from huggingface_hub import constants

    fresh = module_from_spec(constants.__spec__)
    cast("Loader", constants.__spec__.loader).exec_module(fresh)
    return fresh
