"""A guard watches for one of the costs that this engine promises away, and counts, warns or refuses."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

from langchain_gemma_jax.engine.host.own_log import show_problem
from langchain_gemma_jax.errors import GuardError


class GuardWarning(UserWarning):
    """A guard that is set to "warn" was tripped."""


@dataclass
class Guard:
    """One guard: counts what it watches for, and warns or raises as its mode says.

    guard = Guard("recompile", mode="warn", trips=metrics.guard_trips)
    guard.trip("the program ('step', 3, 512) is not on the ladders")
    """

    name: str
    mode: str  # "off", "warn" or "raise"
    trips: dict[str, int] = field(default_factory=dict)  # how often each guard was tripped, by name

    def trip(self, reason: str) -> None:
        """Count what the guard watches for, and warn or raise as its mode says.

        Raises:
            GuardError: the mode is "raise", or warnings are errors in this process.
        """
        if self.mode == "off":
            return
        self.trips[self.name] = self.trips.get(self.name, 0) + 1
        if self.mode == "raise":
            raise GuardError(f"{self.name} guard: {reason}.")
        try:
            warnings.warn(f"{self.name} guard: {reason}.", GuardWarning, stacklevel=3)
        except GuardWarning as warning:
            raise GuardError(str(warning)) from None
        except Exception:  # noqa: BLE001  warnings.showwarning is anybody's
            show_problem("warnings.showwarning")
