"""Templates: ``[Please |Could you ]{verb} the [new |]{noun}`` stands for many sentences.

Square brackets hold alternatives, which may be nested; braces hold what is filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TypeAlias

Part: TypeAlias = "str | Slot | tuple[tuple[Part, ...], ...]"
"""Plain text, something to fill in, or alternatives."""


@dataclass(frozen=True)
class Slot:
    """Something to fill in."""

    name: str


def expand(template: str, rng: Random, slots: Mapping[str, str]) -> str:
    """One of the sentences that a template stands for."""
    out: list[str] = []
    _write(parse(template), rng, slots, out)
    return "".join(out)


def slots_of(template: str) -> set[str]:
    """The names of everything that has to be filled in."""
    return {name for part in parse(template) for name in _names(part)}


@cache
def parse(template: str) -> tuple[Part, ...]:
    """The parts of a template.

    Raises:
        ValueError: brackets or braces that do not match.
    """
    parts, end = _sequence(template, 0, top=True)
    if end != len(template):
        raise ValueError(f"expected every ] to have its [, found another at {end} in {template!r}")
    return parts


def _sequence(text: str, at: int, *, top: bool) -> tuple[tuple[Part, ...], int]:
    parts: list[Part] = []
    while at < len(text):
        match text[at]:
            case "[":
                choice, at = _alternatives(text, at + 1)
                parts.append(choice)
            case "]":
                break
            case "|" if not top:
                break
            case "{":
                end = text.index("}", at)
                parts.append(Slot(text[at + 1 : end]))
                at = end + 1
            case _:
                end = min((i for i in (text.find(c, at) for c in "[]{|") if i >= 0), default=len(text))
                end = end if end > at else at + 1
                parts.append(text[at:end])
                at = end
    return tuple(parts), at


def _alternatives(text: str, at: int) -> tuple[Part, int]:
    choices: list[tuple[Part, ...]] = []
    while True:
        parts, at = _sequence(text, at, top=False)
        choices.append(parts)
        if at >= len(text):
            raise ValueError(f"expected every [ to have its ], found none in {text!r}")
        at += 1
        if text[at - 1] == "]":
            return tuple(choices), at


def _write(parts: tuple[Part, ...], rng: Random, slots: Mapping[str, str], out: list[str]) -> None:
    for part in parts:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, Slot):
            out.append(slots[part.name])
        else:
            _write(part[int(rng.random() * len(part))], rng, slots, out)


def _names(part: Part) -> set[str]:
    if isinstance(part, str):
        return set()
    if isinstance(part, Slot):
        return {part.name}
    return {name for choice in part for inner in choice for name in _names(inner)}
