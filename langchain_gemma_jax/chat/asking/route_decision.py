"""A route's decision for one step of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RouteDecision:
    """The model that a route gave a step to, and the reason."""

    size: str
    model: str
    reason: str
    last: str | None
    chosen: bool = True  # by the route, and not by the caller
    gave_up: tuple[str, ...] = ()  # the sizes whose answers were not taken

    @property
    def as_metadata(self) -> dict[str, Any]:
        """The decision as ``response_metadata["route"]`` has it."""
        found = {"size": self.size, "model": self.model, "reason": self.reason, "last": self.last}
        return found | ({"escalated_from": list(self.gave_up)} if self.gave_up else {})
