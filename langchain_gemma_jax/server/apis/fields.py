"""Checks of requests' fields: each error names the field, the values that it may have, and its value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_gemma_jax.bounded_json import bounded_loads
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.block_forms import is_media
from langchain_gemma_jax.stopping import looking

MOST = 10_000  # messages, blocks of a message, calls of a message
MOST_TOOLS = 1000
MOST_TEXTS = 2048  # in one request for vectors, as OpenAI has it


def refuse_unknown(body: Mapping[str, Any], known: Iterable[str], where: str = "") -> None:
    """Refuse unknown fields, which would have no effect.

    Raises:
        InputError: there is one.
    """
    if unknown := sorted(set(body) - set(known)):
        raise InputError(f"{where}{unknown[0][:100]}: this server knows no such field. Leave it out.")


def as_object(value: object, where: str) -> dict[str, Any]:
    """Return an object.

    Raises:
        InputError: it is none.
    """
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected an object, found {_shown(value)}.")
    return value


def as_list(value: object, where: str, most: int = MOST) -> list[Any]:
    """Return a list.

    Raises:
        InputError: it is none, or longer than it may be.
    """
    if not isinstance(value, list):
        raise InputError(f"{where}: expected a list, found {_shown(value)}.")
    if len(value) > most:
        raise InputError(f"{where}: expected at most {most}, found {len(value)}.")
    return value


def as_text(value: object, where: str) -> str:
    """Return a string.

    Raises:
        InputError: it is none.
    """
    if not isinstance(value, str):
        raise InputError(f"{where}: expected a string, found {_shown(value)}.")
    return value


def as_truth(value: object, where: str) -> bool:
    """Return true or false.

    Raises:
        InputError: it is neither.
    """
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{where}: expected true or false, found {_shown(value)}.")
    return bool(value)


def as_size(value: object, where: str) -> int | None:
    """Return a whole number from 1, or None.

    Raises:
        InputError: it is neither.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{where}: expected a whole number from 1, found {value!r:.60}.")
    return value


def as_arguments(value: object, where: str) -> dict[str, Any]:
    """Return a call's arguments, which are an object written as JSON.

    Raises:
        InputError: they are none.
    """
    try:
        found = bounded_loads(as_text(value, where) or "{}")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: expected an object written as JSON: {str(error)[:100]}.") from None
    return as_object(found, where)


def as_blocks(value: object, where: str, kinds: Mapping[str, str], *, shows: bool = False) -> list[dict[str, Any]]:
    """Return content as LangChain's blocks.

    Args:
        value: the content.
        where: its place, for errors.
        kinds: the types of text blocks, and for each the name of the field that holds the text.
        shows: allow images, sounds and files. They are left as they are: the code that decodes them reads them.

    Raises:
        InputError: ``value`` is no content.
    """
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    found = []
    for number, each in enumerate(looking(as_list(value, where))):
        block, place = as_object(each, f"{where}[{number}]"), f"{where}[{number}]"
        kind = as_text(block.get("type"), f"{place}.type")
        if kind in kinds:
            found.append({"type": "text", "text": as_text(block.get(kinds[kind]), f"{place}.{kinds[kind]}")})
        elif shows and is_media(block):
            found.append(block)
        else:
            raise InputError(
                f"{place}: expected a block of type {', '.join(kinds)}; found {kind[:50]!r}. Images, sounds and files "
                "are shown by users and tools alone: describe in words what is in it."
            )
    return found


def texts_or_blocks(blocks: list[dict[str, Any]], between: str = "") -> str | list[str | dict[Any, Any]]:
    """Return content that is all text as one text, and other content as it is."""
    if all(block["type"] == "text" for block in blocks):
        return between.join(block["text"] for block in blocks)
    return list(blocks)


def _shown(value: object) -> str:
    return f"{type(value).__name__} {value!r:.60}" if isinstance(value, str | int | float) else type(value).__name__
