"""The division of an array's axis among devices: the number of parts, and the units that stay whole.

Plain numbers, no JAX. The devices form a mesh with one axis for each prime factor of their number: eight devices are
``(2, 2, 2)``. A section that divides among fewer devices is divided along the first mesh axes, and repeated along the
others: of two key-value heads on eight devices, each head is on four of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig

WhyNot: TypeAlias = Callable[[int], str | None]
"""Returns why a model cannot be divided among N devices. None: it can."""


@dataclass(frozen=True)
class Section:
    """A range of an axis that is divided separately, such as the query heads of a joint projection."""

    name: str  # for messages: "query heads"
    count: int  # of units that stay whole: heads, or single outputs
    size: int = 1  # numbers along the axis in each unit
    block: int = 1  # numbers that are stored as one element

    @property
    def stored(self) -> int:
        """Number of stored elements along the axis."""
        return self.count * self.size // self.block


@dataclass(frozen=True)
class Division:
    """The division of arrays among a number of devices."""

    devices: int

    @property
    def axes(self) -> tuple[int, ...]:
        """The mesh axes: the prime factors of the number of devices, smallest first."""
        axes, left, factor = [], self.devices, 2
        while left > 1:
            while left % factor == 0:
                axes.append(factor)
                left //= factor
            factor += 1
        return tuple(axes)

    def ways(self, section: Section) -> int:
        """Return the number of equal parts of a section: the devices along as many first mesh axes as divide it."""
        ways = 1
        for axis in self.axes:
            if not _divides(section, ways * axis):
                break
            ways *= axis
        return ways

    def ways_of(self, sections: tuple[Section, ...]) -> int:
        """Return the number of parts of an axis with these sections: that of the section with the most parts."""
        return max((self.ways(section) for section in sections), default=1)

    def part(self, sections: tuple[Section, ...]) -> int:
        """Return the length of the axis on each device, in stored elements."""
        return sum(section.stored // self.ways(section) for section in sections)

    def cuts(self, sections: tuple[Section, ...], number: int) -> tuple[slice, ...]:
        """Return the pieces of the undivided axis that make up part ``number`` of ``ways_of(sections)``."""
        pieces, first, parts = [], 0, self.ways_of(sections)
        for section in sections:
            ways = self.ways(section)
            length = section.stored // ways
            start = first + number * ways // parts * length
            pieces.append(slice(start, start + length))
            first += section.stored
        return tuple(pieces)

    def along(self, ways: int) -> int:
        """Return the number of mesh axes, from the first on, that together have ``ways`` devices."""
        return next(count for count in range(len(self.axes) + 1) if prod(self.axes[:count]) == ways)


def _divides(section: Section, ways: int) -> bool:
    """Return True if all parts have equally many whole units, and begin where a block does."""
    return section.count % ways == 0 and section.count // ways * section.size % section.block == 0


def cut(sections: tuple[Section, ...], lengths: tuple[int, ...]) -> tuple[tuple[Section, ...], ...]:
    """Return the sections of each run of these lengths; empty for all runs if one ends within a section."""
    waiting, runs = list(sections), []
    for length in lengths:
        taken: list[Section] = []
        while waiting and sum(section.stored for section in taken) < length:
            taken.append(waiting.pop(0))
        if sum(section.stored for section in taken) != length:
            return ((),) * len(lengths)
        runs.append(tuple(taken))
    return tuple(runs)


def query_heads(config: ModelConfig, head_dim: int) -> Section:
    """Return the query heads of a layer."""
    return Section("query heads", config.heads, head_dim)


def kv_heads(layer: LayerConfig) -> Section:
    """Return the key heads of a layer, or its value heads."""
    return Section("key-value heads", layer.kv_heads, layer.head_dim)


def why_not(config: ModelConfig, devices: int) -> str | None:
    """Return why a model cannot be divided among ``devices`` devices. None: it can."""
    division = Division(devices)
    ways = division.ways(query_heads(config, 1))
    if devices > 1 and config.embedding is not None:
        return "it makes vectors of texts, which one device does"
    if devices > 1 and ways == 1:
        return f"its {config.heads} query heads do not divide among {devices} devices, and its attention would be whole"
    for layer in config.layers:
        if (parts := division.ways(Section("feed-forward", layer.ffw_width))) != devices:
            return f"its feed-forward of {layer.ffw_width:,} goes {parts} ways among {devices} devices"
        shared = division.ways(kv_heads(layer))
        if shared not in {layer.kv_heads, ways}:
            return (
                f"its {config.heads} query heads go {ways} ways and their {layer.kv_heads} key-value heads {shared} "
                "ways, so a device would need some of several heads"
            )
    return None


def working_counts(why_not: WhyNot, most: int) -> tuple[int, ...]:
    """Return the numbers of devices, up to ``most``, among which a model can be divided."""
    return tuple(count for count in range(1, most + 1) if why_not(count) is None)
