"""What a decision is made from, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Signals:
    """One step of a conversation, as it can be seen before any model has read it."""

    sizes: tuple[str, ...]
    """The names of the route's sizes, smallest first."""
    last: str | None = None
    """The size that answered in this conversation before. None: nobody has."""
    tools: int = 0
    """Tools that may be called."""
    forced: bool = False
    """Whether the answer has to be a call of a tool."""
    structured: bool = False
    """Whether the answer has to be an object of a schema."""
    prompt_tokens: int = 0
    """About how many tokens the conversation has."""
    results: int = 0
    """Results of tools since somebody last said something."""
    failed: int = 0
    """Calls that failed, or that could not be understood, since somebody last said something."""
    said: str = field(default="", repr=False)
    """What somebody said last. It is theirs, so it is not shown where signals are printed or logged."""
    quiet_turns: int = 0
    """Turns in a row, before this one, in which no tool was called."""
    judged: bool = False
    """Whether the answers of smaller sizes are judged, so that a larger one gives those again that may be wrong."""
    resident: frozenset[str] = frozenset()
    """The sizes whose weights are in memory."""
    switch_s: Mapping[str, float] = field(default_factory=dict)
    """About how many seconds it would cost to let each size answer: loading it, and reading the conversation."""


@dataclass(frozen=True)
class Choice:
    """Which size answers, and why: the reason is shown in ``response_metadata["route"]``."""

    size: str
    reason: str
