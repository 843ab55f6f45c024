"""The key of a program: its kind, and the sizes that it is compiled for."""

from __future__ import annotations

from typing import TypeAlias

ProgramKey: TypeAlias = tuple[str | int, ...]
"""Such as ``("step", rows, capacity)``. ``ladders.Ladders.program_keys`` yields all possible keys;
``device/programs.py`` has the program of each."""

ENCODING = ("encode_begin", "encode_layer", "encode_end")
"""The programs of an encoder, in their order."""

MOVING = ("copy_pages", "take_pages", "put_pages")
"""The programs that copy pages, where the host cannot reach the memory of the pool."""

ADAPTED = "adapted_"
"""Before the kind of a program whose rows may have adapters: ``("adapted_step", slots, rank, rows, capacity)``."""

TAKE_ADAPTERS = ("read", "step", "read_medium")
"""The programs that there are for rows with adapters too."""

PUT_ADAPTER = "put_adapter"
"""The program that puts an adapter into a slot: ``(PUT_ADAPTER, slots, rank)``."""


def adapted(key: ProgramKey, slots: int, rank: int) -> ProgramKey:
    """Return the key of the same program for rows of which any may have one of the adapters in these slots."""
    return (f"{ADAPTED}{key[0]}", slots, rank, *key[1:])


def without_adapters(key: ProgramKey) -> tuple[ProgramKey, tuple[int, int] | None]:
    """Return the key of the same program for rows without adapters, and the slots and the rank if it was another."""
    kind = str(key[0])
    if not kind.startswith(ADAPTED):
        return key, None
    return (kind.removeprefix(ADAPTED), *key[3:]), (int(key[1]), int(key[2]))
