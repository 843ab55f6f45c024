"""``WorkInHand``: the state that the owner thread's parts share: requests, dispatches in flight, models, and errors."""

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
    """The state of the owner thread's loop. Only the owner thread changes it.

    Frozen, because its parts hold references to the same scheduler and queue of dispatches: they are never replaced.
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
        """Return the runner of a request, whose model is in memory."""
        return self.models.runners[request.asked.model]
