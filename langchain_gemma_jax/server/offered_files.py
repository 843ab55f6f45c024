"""``GET /kv/...``: this replica's prefixes for the other ones of its deployment, sealed as they lie on the disk.

A caller proves that it has the deployment's prefix key, and needs no API key: nothing here is of use to others.
"""

from __future__ import annotations

import re
from typing import Final

from langchain_gemma_jax.chat.calling.starting import in_thread
from langchain_gemma_jax.engine.prefix_store.peer_http import PART, PATH
from langchain_gemma_jax.engine.prefix_store.prefix_offers import PrefixOffers
from langchain_gemma_jax.server.http.exchange import Exchange
from langchain_gemma_jax.server.http.problems import RequestError

_BYTES: Final = "application/octet-stream"
_RANGE: Final = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})")
_BEARER: Final = "Bearer "


class OfferedFiles:
    """Answers requests for prefixes."""

    async def answer(self, exchange: Exchange) -> None:
        """Answer one request: a list of what there is of a model, or a part of a file.

        Raises:
            RequestError: nothing is offered here, the caller does not have the key, or there is no such file.
        """
        offers = _offers()
        if offers is None:
            raise RequestError(
                "This server offers no prefixes: gemma-jax serve --prefix-peers URL --prefix-store SIZE "
                "--prefix-key-file FILE.",
                404,
                "no_such_path",
            )
        header = exchange.headers.get("authorization", "")
        if not header.startswith(_BEARER) or not offers.knows(header.removeprefix(_BEARER)):
            raise RequestError(
                "Expected the word that replicas make of their prefix_key_file; found none, or another. Give all "
                "replicas of a deployment the same key.",
                401,
                "invalid_prefix_key",
            )
        if exchange.method != "GET":
            raise RequestError(f"Prefixes are asked by GET, not by {exchange.method[:20]}.", 405, "no_such_method")
        what = exchange.path.removeprefix(PATH)
        if what.endswith("-"):
            await self._list(exchange, offers, what)
        else:
            await self._send_part(exchange, offers, what)

    async def _list(self, exchange: Exchange, offers: PrefixOffers, part: str) -> None:
        tag = await in_thread(offers.tag)
        if exchange.headers.get("if-none-match") == tag:
            await exchange.send_text(b"", _BYTES, 304, {"etag": tag})
            return
        if (found := await in_thread(offers.headers, part)) is None:
            raise _no_such(part)
        await exchange.send_text(found, _BYTES, 200, {"etag": tag})

    async def _send_part(self, exchange: Exchange, offers: PrefixOffers, name: str) -> None:
        asked = _RANGE.fullmatch(exchange.headers.get("range", ""))
        if asked is None:
            raise RequestError(
                f"Expected a header such as range: bytes=0-1023, of {PART} bytes at most.", 416, "no_such_part"
            )
        first, end = int(asked[1]), int(asked[2]) + 1
        if (found := await in_thread(offers.part, name, first, end)) is None:
            raise _no_such(name)
        await exchange.send_text(found, _BYTES, 206, {"content-range": f"bytes {first}-{end - 1}/*"})


def _offers() -> PrefixOffers | None:
    from langchain_gemma_jax.engine.api.process import running_engine

    engine = running_engine()
    return None if engine is None else engine.prefix_offers


def _no_such(name: str) -> RequestError:
    return RequestError(f"There is no prefix {name[:80]!r} here, or no such part of it.", 404, "no_such_prefix")
