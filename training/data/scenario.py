"""A tool of everyday life, and the short form in which many are written down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """One tool and what it is good for."""

    name: str
    description: str
    fields: tuple[str, ...]
    asks: tuple[str, ...]  # each as ``told`` reads it


def read(text: str) -> tuple[Scenario, ...]:
    r"""Scenarios with an empty line between them: name, description and fields in a line, then a line for each request.

    >>> read("play_song | Play a song. | song:title ?artist:person\nPlay {song} by {artist}.")[0].fields
    ('song:title', '?artist:person')

    Raises:
        ValueError: one without its three parts, or without a request.
    """
    return tuple(_one(block) for block in text.strip().split("\n\n"))


def told(ask: str) -> tuple[str, dict[str, str]]:
    """What a request says, and the arguments that it means without saying their values.

    >>> told("Switch the {room} lamp off. => on=false")
    ('Switch the {room} lamp off.', {'on': 'false'})
    """
    said, _, meant = ask.partition(" => ")
    pairs = (each.partition("=") for each in meant.split(", ") if each)
    return said, {name.strip(): value.strip() for name, _, value in pairs}


def _one(block: str) -> Scenario:
    first, *asks = (line.strip() for line in block.strip().splitlines())
    parts = f"{first} ".split(" | ")  # no fields: nothing behind the last bar
    if len(parts) != 3 or not asks:
        raise ValueError(f"expected 'name | description | fields' and requests below it, found {block!r}")
    name, description, fields = parts
    return Scenario(name, description, tuple(fields.split()), tuple(asks))
