"""What the parts of the owner thread work on together: requests, dispatches in flight, models, and what went wrong."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from langchain_gemma_jax.engine.base.events import Events
from langchain_gemma_jax.engine.base.metrics import CompileCounter, Metrics
from langchain_gemma_jax.engine.requests.clock import Standstills
from langchain_gemma_jax.engine.requests.inbox import Inbox
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.residency.known_models import KnownModels
from langchain_gemma_jax.engine.steps.in_flight import InFlight
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.engine.steps.scheduler import Scheduler


@dataclass(frozen=True, eq=False)
class WorkInHand:
    """The state of the owner thread's loop. Nobody but the owner thread changes it.

    Frozen, as the parts hold the same scheduler and the same queue of dispatches: these are emptied, never replaced.
    """

    scheduler: Scheduler
    metrics: Metrics
    events: Events
    compiles: CompileCounter
    inbox: Inbox = field(default_factory=Inbox)
    models: KnownModels = field(default_factory=KnownModels)
    flights: deque[InFlight] = field(default_factory=deque)  # oldest first
    raised: list[BaseException] = field(default_factory=list)  # in this round of the loop
    standstills: Standstills = field(default_factory=Standstills)

    def runner_of(self, request: Request) -> Runner:
        """Return what runs a request whose model is in memory."""
        return self.models.runners[request.asked.model]
