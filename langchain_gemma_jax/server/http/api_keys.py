"""API keys: read from a file that only its owner can read, compared in constant time. Each one has its own scope."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from pathlib import Path

from langchain_gemma_jax.errors import ApiKeyError, InputError
from langchain_gemma_jax.private.private_file import read_private

SHORTEST = 16  # characters of a key
_LARGEST = 2**20  # bytes of the file
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ApiKeys:
    """The keys of a server as digests, each with the scope of its callers."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        """``keys``: a name for each key."""
        self._known = [(_digest(key), f"key:{name}") for key, name in keys.items()]

    def scope_of(self, headers: Mapping[str, str]) -> str:
        """Return the scope of the key in a request's headers.

        Raises:
            ApiKeyError: there is no key, or an unknown one.
        """
        kind, _, shown = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            shown = headers.get("x-api-key", "")
        if not shown.strip():
            raise ApiKeyError(
                "This server wants an API key: ChatGemmaJax(api_key=...), the environment variable GEMMA_JAX_API_KEY, "
                "or a header: 'Authorization: Bearer KEY', 'x-api-key: KEY'."
            )
        given, found = _digest(shown.strip()), ""
        for digest, scope in self._known:  # all of them, so that the time does not depend on the key
            if hmac.compare_digest(digest, given):
                found = scope
        if not found:
            raise ApiKeyError("This server does not know this API key. Ask its operator for one.")
        return found


def read_keys(path: str | os.PathLike[str]) -> ApiKeys:
    """Return the keys in a file: one on each line, with or without a name before it. Comments begin with #.

    Raises:
        InputError: there is no such file, other users can read it, or a line of it is wrong.
    """
    file = Path(path).expanduser()
    data = read_private(file, "--api-key-file", "a file with a key on each line", _LARGEST)
    return ApiKeys(_parsed(data.decode(errors="replace"), str(file)))


def _parsed(text: str, file: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        *names, key = words
        name = names[0] if names else hashlib.sha256(key.encode()).hexdigest()[:12]
        if len(names) > 1 or not _NAME.fullmatch(name) or len(key) < SHORTEST or not key.isascii():
            raise InputError(
                f"{file}, line {number}: expected a key of at least {SHORTEST} characters, alone or behind a name of "
                "letters and digits. python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one."
            )
        if key in found or name in found.values():
            raise InputError(f"{file}, line {number}: this key, or its name, is in the file twice.")
        found[key] = name
    if not found:
        raise InputError(f"{file}: expected a key on each line, found none.")
    return found


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
