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
