"""``Resident``: a conversation whose keys and values are kept, in pages."""

from __future__ import annotations

import itertools
from array import array
from dataclasses import dataclass, field
from typing import Any

from langchain_gemma_jax.engine.requests.prompt import KEY_TYPE

_numbers = itertools.count(1)


@dataclass(eq=False)
class Resident:
    """A conversation in memory. A page is its number on the device, or its content in host memory."""

    scope: str
    slots: int  # tokens of a page
    keys: array[int] = field(repr=False)  # of the tokens that are kept, in order; see `prompt.token_keys`
    whole: list[Any] = field(default_factory=list, repr=False)  # pages of the global layers, in order
    local: dict[int, Any] = field(default_factory=dict, repr=False)  # those of local layers, by position // slots
    turns: list[int] = field(default_factory=list)  # lengths before the last whose windows are kept, ascending
    system: int = 0  # the number of leading tokens that are a system prompt; 0: none, or not known
    leased: bool = False  # a running request owns it: others may only share its pages
    last_used: int = 0  # the index's clock
    version: int = 0  # another number whenever its pages change
    number: int = field(default_factory=lambda: next(_numbers), init=False)

    def __post_init__(self) -> None:
        if getattr(self.keys, "typecode", None) != KEY_TYPE:
            raise TypeError(f"expected keys as array({KEY_TYPE!r}), found {type(self.keys).__name__}: see token_keys()")
