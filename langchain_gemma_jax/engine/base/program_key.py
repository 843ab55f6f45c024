"""The key of a program: what kind it is, and the sizes that it is compiled for."""

from __future__ import annotations

from typing import TypeAlias

ProgramKey: TypeAlias = tuple[str | int, ...]
"""``("step", rows, capacity)``. ``ladders.Ladders.program_keys`` says which keys there can be, ``device/programs.py``
what each runs."""

ENCODING = ("encode_begin", "encode_layer", "encode_end")
"""The programs of an encoder, in their order."""
