"""Continuations of texts as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from langchain_gemma_jax.chat.calling.continued import Continuation, TextEnd
from langchain_gemma_jax.errors import ServerError


def continuation_out(continuation: Continuation) -> dict[str, Any]:
    """Return a continuation in the form in which it is sent."""
    return {"text": continuation.text, "ended": asdict(continuation.end)}


def continuation_in(item: Mapping[str, Any]) -> Continuation:
    """Return the continuation that was sent.

    Raises:
        ServerError: it is of no form that is known here.
    """
    text, end = item.get("text"), piece_in({"ended": item.get("ended")})
    if not isinstance(text, str) or not isinstance(end, TextEnd):
        raise _unknown(item)
    return Continuation(text, end)


def piece_out(piece: str | TextEnd) -> dict[str, Any]:
    """Return a piece of a continuation in the form in which it is sent."""
    return {"text": piece} if isinstance(piece, str) else {"ended": asdict(piece)}


def piece_in(item: Mapping[str, Any]) -> str | TextEnd:
    """Return the piece that was sent: more of a text, or its end.

    Raises:
        ServerError: it is of no form that is known here.
    """
    try:
        return str(item["text"]) if "text" in item else TextEnd(**item["ended"])
    except (KeyError, TypeError) as error:
        raise _unknown(item) from error


def _unknown(item: Mapping[str, Any]) -> ServerError:
    return ServerError(
        f"The server sent a text of a form that is not known here: {dict(item)!r:.200}. Are client and server of one "
        "version? Install the same one of langchain-gemma-jax for both."
    )
