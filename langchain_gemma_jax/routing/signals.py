"""``Signals``, the facts that a policy decides from, and ``Choice``, its decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Facts of one step of a conversation, available before any model has read it."""

    sizes: tuple[str, ...]
    """The names of the route's sizes, smallest first."""
    last: str | None = None
    """The size that last answered in this conversation. None: no size has answered yet."""
    tools: int = 0
    """Tools that may be called."""
    forced: bool = False
    """True if the answer must be a tool call."""
    structured: bool = False
    """True if the answer must be an object of a schema."""
    prompt_tokens: int = 0
    """The approximate number of tokens in the conversation."""
    results: int = 0
    """Tool results since the user's last message."""
    failed: int = 0
    """Calls that failed, or that could not be parsed, since the user's last message."""
    said: str = field(default="", repr=False)
    """The user's last message. It is private, so it is left out when signals are printed or logged."""
    quiet_turns: int = 0
    """Turns in a row, before this one, in which no tool was called."""
    judged: bool = False
    """True if the answers of smaller sizes are judged, and a larger size answers again where one may be wrong."""
    resident: frozenset[str] = frozenset()
    """The sizes whose weights are in memory."""
    switch_s: Mapping[str, float] = field(default_factory=dict)
    """The estimated seconds before each size could answer: to load it, and to read the conversation."""


@dataclass(frozen=True)
class Choice:
    """The size that answers, and the reason, which ``response_metadata["route"]`` shows."""

    size: str
    reason: str
