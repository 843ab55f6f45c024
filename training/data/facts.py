"""What somebody tells of themselves, put together of verbs and things: a few facts are known by heart, these are not.

``facts.txt`` has frames. In one, ``/`` separates ways to say it, and what stands in braces, but for ``{v}``, is any
word of the list of that name: "I {do} with {v}" and "Who do I {do} with?".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from training.data.errand_kinds import errand_kind
from training.data.side import listed
from training.data.template import slots_of
from training.data.words import common
from training.data.world import World

_FILE = Path(__file__).with_name("facts.txt")
_WORDS = "= words\n"  # what stands before the lists of words


@dataclass(frozen=True)
class Fact:
    """How it is told, how it is asked for, and both again as they are said back: "you live in Bern"."""

    kind: str
    told: tuple[str, ...]
    asked: tuple[str, ...]
    back: str


_COLORS = listed(
    "red blue green yellow black white grey brown orange purple pink beige silver golden turquoise crimson"
)
_SPOTS = (*listed("in under behind on beside above near inside"), "next to", "in", "in", "on")
_OWN: dict[str, Callable[[World], str]] = {
    "color": lambda w: w.one(_COLORS),
    "spot": lambda w: f"{w.one(_SPOTS)} the {w.one(common.NOUNS)}",
}


def put_together(w: World) -> Fact:
    """Any of them."""
    frames, lists = _read()
    frame = w.one(frames)
    words = {name: w.one(options) for name, options in lists.items()}
    words["did"], _, words["done"] = words["did"].partition(":")

    def filled(text: str) -> str:
        return w.fill(text, v="{v}", **{name: words[name] for name in slots_of(text) - {"v"}})

    return Fact(frame.kind, tuple(map(filled, frame.told)), tuple(map(filled, frame.asked)), filled(frame.back))


def value_of(w: World, fact: Fact) -> str:
    """What is told, as people write it."""
    own = _OWN.get(fact.kind)
    return own(w) if own else errand_kind(fact.kind).draw(w).text


@cache
def _read() -> tuple[tuple[Fact, ...], dict[str, tuple[str, ...]]]:
    """The frames, and the lists of words by name."""
    text, _, lists = _FILE.read_text("utf-8").partition(_WORDS)
    _, *blocks = text.strip().split("\n\n")
    words = {name: listed(line) for name, line in re.findall("(.+) = (.+)", lists)}
    return tuple(map(_frame, blocks)), words | {"thing": common.NOUNS, "things": common.SEVERAL}


def _frame(block: str) -> Fact:
    kind, told, asked, back = block.splitlines()
    return Fact(kind, tuple(told.split(" / ")), tuple(asked.split(" / ")), back)
