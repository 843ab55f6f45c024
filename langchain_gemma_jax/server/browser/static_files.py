"""The files that the browser gets: read once, sent with headers that let the page do nothing but ask this server."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from langchain_gemma_jax.server.http.exchange import Exchange

FOLDER = Path(__file__).with_name("files")
HOME = "/"  # where the document is; the other files are beside it, at PREFIX
PREFIX = "/page/"
DOCUMENT = "index.html"
RUNNING = b"Ollama is running"  # what clients of Ollama look for at "/"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing of another host, nothing inline, no frame around it, and no text becomes markup: a model's words stay words.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=()",
        "cache-control": "no-cache",  # asked for again each time, and answered without a body if nothing changed
    }
)


@dataclass(frozen=True)
class StaticFile:
    """A file as it is sent."""

    body: bytes
    kind: str
    tag: str  # of this content


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return the files by their paths."""
    found = {}
    for file in sorted(FOLDER.iterdir()):
        body = file.read_bytes()
        path = HOME if file.name == DOCUMENT else PREFIX + file.name
        found[path] = StaticFile(body, _KINDS[file.suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    return MappingProxyType(found)


def wants_page(headers: Mapping[str, str]) -> bool:
    """Return True if a client shows documents, as browsers do: only then "/" is the page."""
    return "text/html" in headers.get("accept", "")


async def send_file(exchange: Exchange, file: StaticFile) -> None:
    """Send a file, or say that the browser's copy is still right."""
    headers = {**HEADERS, "etag": file.tag, "vary": "accept"}
    known = {each.strip().removeprefix("W/") for each in exchange.headers.get("if-none-match", "").split(",")}
    unchanged = file.tag in known
    await exchange.send_text(b"" if unchanged else file.body, file.kind, 304 if unchanged else 200, headers)
