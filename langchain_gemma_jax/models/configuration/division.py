"""How an axis of an array is divided among devices: which parts of it stay whole, and into how many it goes.

Plain numbers, no JAX. The devices lie along axes of their own, one for each prime factor of their number: eight are
``(2, 2, 2)``. What can be divided by fewer than all of them is divided along the first of these axes, and repeated
along the others: two key-value heads on eight devices go four times to each half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig

WhyNot: TypeAlias = Callable[[int], str | None]
"""Says why a model cannot be divided among so many devices. None: it can."""


@dataclass(frozen=True)
class Section:
    """Some of an axis that is divided by itself: the query heads of a joint projection, say."""

    name: str  # for people: "query heads"
    count: int  # of what stays whole: heads, or single outputs
    size: int = 1  # how many numbers along the axis each takes
    block: int = 1  # how many of these numbers are stored as one

    @property
    def stored(self) -> int:
        """How long it is in memory."""
        return self.count * self.size // self.block


@dataclass(frozen=True)
class Division:
    """A number of devices, as an axis of an array is divided among them."""

    devices: int

    @property
    def axes(self) -> tuple[int, ...]:
        """The prime factors of the number of devices, smallest first."""
        found, left, factor = [], self.devices, 2
        while left > 1:
            while left % factor == 0:
                found.append(factor)
                left //= factor
            factor += 1
        return tuple(found)

    def ways(self, section: Section) -> int:
        """Into how many equal parts a section goes: the devices along the first axes, as many as divide it."""
        found = 1
        for axis in self.axes:
            if not _divides(section, found * axis):
                break
            found *= axis
        return found

    def ways_of(self, sections: tuple[Section, ...]) -> int:
        """Into how many parts an axis with these sections goes: as many as the one that is divided the most."""
        return max((self.ways(section) for section in sections), default=1)

    def part(self, sections: tuple[Section, ...]) -> int:
        """How long the axis is on each device."""
        return sum(section.stored // self.ways(section) for section in sections)

    def cuts(self, sections: tuple[Section, ...], number: int) -> tuple[slice, ...]:
        """Where the pieces of one of the ``ways_of(sections)`` parts lie in the axis as it is undivided."""
        found, first, parts = [], 0, self.ways_of(sections)
        for section in sections:
            ways = self.ways(section)
            length = section.stored // ways
            start = first + number * ways // parts * length
            found.append(slice(start, start + length))
            first += section.stored
        return tuple(found)

    def along(self, ways: int) -> int:
        """How many of the axes, from the first on, make so many ways."""
        return next(count for count in range(len(self.axes) + 1) if prod(self.axes[:count]) == ways)


def _divides(section: Section, ways: int) -> bool:
    """Whether each part has as many whole things, and begins where a block does."""
    return section.count % ways == 0 and section.count // ways * section.size % section.block == 0


def cut(sections: tuple[Section, ...], lengths: tuple[int, ...]) -> tuple[tuple[Section, ...], ...]:
    """Return the sections of each of some runs of so many numbers. None for any, where one ends within a section."""
    waiting, found = list(sections), []
    for length in lengths:
        taken: list[Section] = []
        while waiting and sum(section.stored for section in taken) < length:
            taken.append(waiting.pop(0))
        if sum(section.stored for section in taken) != length:
            return ((),) * len(lengths)
        found.append(tuple(taken))
    return tuple(found)


def query_heads(config: ModelConfig, head_dim: int) -> Section:
    """Return the query heads of a layer."""
    return Section("query heads", config.heads, head_dim)


def kv_heads(layer: LayerConfig) -> Section:
    """Return the key heads of a layer, or its value heads."""
    return Section("key-value heads", layer.kv_heads, layer.head_dim)


def why_not(config: ModelConfig, devices: int) -> str | None:
    """Say why a model cannot be divided among so many devices. None: it can."""
    division = Division(devices)
    ways = division.ways(query_heads(config, 1))
    if devices > 1 and config.embedding is not None:
        return "it makes vectors of texts, which one device does"
    if devices > 1 and ways == 1:
        return f"its {config.heads} query heads do not divide among {devices} devices, and its attention would be whole"
    for layer in config.layers:
        if (found := division.ways(Section("feed-forward", layer.ffw_width))) != devices:
            return f"its feed-forward of {layer.ffw_width:,} goes {found} ways among {devices} devices"
        shared = division.ways(kv_heads(layer))
        if shared not in {layer.kv_heads, ways}:
            return (
                f"its {config.heads} query heads go {ways} ways and their {layer.kv_heads} key-value heads {shared} "
                "ways, so a device would need some of several heads"
            )
    return None


def working_counts(why_not: WhyNot, most: int) -> tuple[int, ...]:
    """Return the numbers of devices, up to so many, among which a model can be divided."""
    return tuple(count for count in range(1, most + 1) if why_not(count) is None)
