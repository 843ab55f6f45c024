"""The files that the browser gets: read once, sent with headers that let the page do nothing but ask this server."""

from __future__ import annotations

import hashlib
import re
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
MAIN, WHOLE = "main", "whole.js"  # the module that begins, and the name under which it comes with all the others
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


_IMPORT = re.compile(r'^import (\{[^}]+\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)


@dataclass(frozen=True)
class StaticFile:
    """A file as it is sent."""

    body: bytes
    kind: str
    tag: str  # of this content

    @classmethod
    def of(cls, body: bytes, suffix: str) -> StaticFile:
        """Return what is sent for a file with this content."""
        return cls(body, _KINDS[suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return the files by their paths."""
    found = {PREFIX + WHOLE: StaticFile.of(in_one(MAIN).encode(), ".js")}
    for file in sorted(FOLDER.iterdir()):
        path = HOME if file.name == DOCUMENT else PREFIX + file.name
        found[path] = StaticFile.of(file.read_bytes(), file.suffix)
    return MappingProxyType(found)


def in_one(module: str) -> str:
    """Return a module and all that it imports as one file. A browser would queue for them at its six connections."""
    found: dict[str, str] = {}

    def add(name: str) -> None:
        text = FOLDER.joinpath(f"{name}.js").read_text()
        for _, other in _IMPORT.findall(text):
            if other not in found:
                add(other)
        inside = _EXPORT.sub("", _IMPORT.sub(r"const \1 = \2_js;", text))
        found[name] = f"const {name}_js = (() => {{\n{inside}return {{ {', '.join(_EXPORT.findall(text))} }};\n}})();\n"

    add(module)
    return "".join(found.values())


def wants_page(headers: Mapping[str, str]) -> bool:
    """Return True if a client shows documents, as browsers do: only then "/" is the page."""
    return "text/html" in headers.get("accept", "")


async def send_file(exchange: Exchange, file: StaticFile) -> None:
    """Send a file, or say that the browser's copy is still right."""
    headers = {**HEADERS, "etag": file.tag, "vary": "accept"}
    known = {each.strip().removeprefix("W/") for each in exchange.headers.get("if-none-match", "").split(",")}
    unchanged = file.tag in known
    await exchange.send_text(b"" if unchanged else file.body, file.kind, 304 if unchanged else 200, headers)
