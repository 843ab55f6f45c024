"""``Resident``: a conversation on the device, one sequence of keys and values with snapshots of its rings."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from langchain_gemma_jax.engine.requests.prompt import KEY_TYPE


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A copy of the local layers' rings at an earlier length. Residents with a common prefix may share it.

    They share the handle: snapshots with the same handle object are one allocation.
    """

    end: int  # valid tokens
    written: int  # the highest position ever written, plus one; beyond `end` after rejected drafts
    nbytes: int
    handle: object = field(repr=False)  # the arrays, never written again


@dataclass(eq=False)
class Resident:
    """One sequence on the device."""

    scope: str
    capacity: int  # in tokens
    nbytes: int  # without its snapshots
    handle: object = field(repr=False)  # the arrays
    keys: array[int] = field(repr=False)  # of the tokens whose KV is valid, in order; see `prompt.token_keys`
    written: int = 0  # the highest position ever written, plus one
    system: int = 0  # the number of leading tokens that are a system prompt; 0: none, or not known
    snapshots: list[Snapshot] = field(default_factory=list)  # by `end`, which differ
    leased: bool = False  # a running request owns it: others may only copy its prefix
    last_used: int = 0  # the index's clock

    def __post_init__(self) -> None:
        if getattr(self.keys, "typecode", None) != KEY_TYPE:
            raise TypeError(f"expected keys as array({KEY_TYPE!r}), found {type(self.keys).__name__}: see token_keys()")
        self.written = max(self.written, len(self.keys))
