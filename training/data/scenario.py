"""A tool of everyday life, and the short form in which many are written down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """One tool and what it is good for."""

    name: str
    description: str
    fields: tuple[str, ...]
    asks: tuple[str, ...]


def read(text: str) -> tuple[Scenario, ...]:
    r"""Scenarios with an empty line between them: name, description and fields in a line, then a line for each request.

    >>> read("play_song | Play a song. | song:title ?artist:person\nPlay {song} by {artist}.")[0].fields
    ('song:title', '?artist:person')

    Raises:
        ValueError: one without its three parts, or without a request.
    """
    return tuple(_one(block) for block in text.strip().split("\n\n"))


def _one(block: str) -> Scenario:
    first, *asks = (line.strip() for line in block.strip().splitlines())
    parts = first.split(" | ")
    if len(parts) != 3 or not asks:
        raise ValueError(f"expected 'name | description | fields' and requests below it, found {block!r}")
    name, description, fields = parts
    return Scenario(name, description, tuple(fields.split()), tuple(asks))
