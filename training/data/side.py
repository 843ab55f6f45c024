"""The two sides that never meet: what is trained on, and what is held out to measure.

Lists are split where they are written (``split``), and everything that is made up belongs to one side
by a hash of its text (``side_of``). So no conversation of one side can hold a template, a word
of a list, a name or a made-up value of the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import Generic, TypeVar

from training.data.stages import LAST

T = TypeVar("T")

HELD_OUT_SHARE = 5  # one made-up text in so many is held out


class Side(StrEnum):
    """Which of the two sides."""

    TRAIN = "train"
    HELD_OUT = "held-out"


@dataclass(frozen=True)
class Split(Generic[T]):
    """One list in two parts that have nothing in common."""

    train: tuple[T, ...]
    held_out: tuple[T, ...]
    more: tuple[T, ...] = ()  # of training too, and picked as often as the rest of its part
    later: Mapping[int, tuple[T, ...]] = field(default_factory=dict)  # by stage of training, from which on it is there

    def __post_init__(self) -> None:
        if common := {*self.train, *self.more, *self.from_stage(LAST)} & set(self.held_out):
            raise ValueError(f"expected two parts with nothing in common, found {sorted(map(str, common))} in both")
        if not self.train or not self.held_out:
            raise ValueError("expected something on both sides, found an empty one")

    def of(self, side: Side) -> tuple[T, ...]:
        """The part of one side."""
        return self.train if side is Side.TRAIN else self.held_out

    def from_stage(self, stage: int) -> tuple[T, ...]:
        """What is there later, up to this stage."""
        return tuple(chain.from_iterable(part for since, part in self.later.items() if since <= stage))


LISTS: dict[str, list[Split[str]]] = {"words": [], "templates": []}
"""Every split that was written, by its kind: what ``check_split`` goes through."""


def split(train: str, held_out: str, more: tuple[str, ...] = ()) -> Split[str]:
    """Words, or phrases separated by commas if there is one. Of ``more`` that is left out which is held out here."""
    kept = listed(held_out)
    made = Split(listed(train), kept, tuple(word for word in more if word not in kept))
    LISTS["words"].append(made)
    return made


def templates(
    train: list[str], held_out: list[str], *, later: Mapping[int, tuple[str, ...]] | None = None
) -> Split[str]:
    """Templates of ``template.py``; each of ``later`` stands for many sentences."""
    made = Split(tuple(train), tuple(held_out), later=later or {})
    LISTS["templates"].append(made)
    return made


@lru_cache(maxsize=1)
def written() -> frozenset[str]:
    """Every word of a list, whatever its side: nothing that is made up may be one by chance."""
    words = (word for each in LISTS["words"] for part in (each.train, each.held_out) for word in part)
    return frozenset(word.casefold() for word in words)


def listed(text: str) -> tuple[str, ...]:
    """The words of a text, or its phrases if there are commas; each once."""
    if "," in text:
        return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    return tuple(dict.fromkeys(text.split()))


def side_of(text: str) -> Side:
    """The side to which a made-up text belongs, whatever its case."""
    return Side.HELD_OUT if zlib.crc32(text.casefold().encode()) % HELD_OUT_SHARE == 0 else Side.TRAIN
