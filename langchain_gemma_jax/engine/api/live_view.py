"""``LiveView``: the engine at one moment, for people who watch it. Any thread may make one.

Nothing here is done by the owner thread, nor does that thread do anything for it: lists are copied at once, and plain
values are read as they are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.conversations.pool_view import PoolView, pool_views
from langchain_gemma_jax.engine.loop.owner import Owner
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.residency.eviction_log import Evicted
from langchain_gemma_jax.engine.residency.model_status import ModelStatus


@dataclass(frozen=True)
class OpenRequest:
    """A request that waits or runs, and how far it is."""

    number: int
    model: str
    scope: str
    app: str
    running: bool
    stage: str
    prompt_tokens: int
    reused_tokens: int
    read_tokens: int  # of its prompt, those that were reused included
    generated_tokens: int
    queued_s: float
    prefill_s: float  # until now, if it still reads
    first_token_s: float | None  # from its submission; None: there is none yet
    total_s: float


@dataclass(frozen=True)
class LiveView:
    """An engine at one moment."""

    requests: tuple[OpenRequest, ...]  # those that are open, oldest first
    pools: tuple[tuple[str, PoolView], ...]  # of the models in memory, by their names
    models: tuple[ModelStatus, ...]
    evictions: tuple[Evicted, ...]  # the latest ones, oldest first
    done: int  # requests since the engine was made, failed ones included ...
    failed: int
    generated_tokens: int
    prefilled_tokens: int
    reused_tokens: int


def live_view(owner: Owner, metrics: Metrics) -> LiveView:
    """Return the owner thread's work at this moment."""
    now = time.monotonic()
    running = owner.scheduler.running.copy()
    waiting = dict.fromkeys((*owner.scheduler.waiting.copy(), *owner.waiting_to_begin))
    found = [_open(each, now, running=True) for each in running]
    found += [_open(each, now, running=False) for each in waiting if each not in running]
    pools = [
        (str(getattr(served, "name", "")), view)
        for served, runner in list(owner.models.runners.items())
        for view in pool_views(runner.kv_store.held)
    ]
    return LiveView(
        requests=tuple(sorted(found, key=lambda each: each.number)),
        pools=tuple(pools),
        models=owner.evictor.statuses(),
        evictions=owner.evictor.log.latest(),
        done=metrics.requests,
        failed=metrics.failed,
        generated_tokens=metrics.generated_tokens,
        prefilled_tokens=metrics.prefilled_tokens,
        reused_tokens=metrics.reused_tokens,
    )


def _open(request: Request, now: float, *, running: bool) -> OpenRequest:
    asked, progress, prompt = request.asked, request.progress, len(request.asked.prompt)
    times = request.timings(now)
    return OpenRequest(
        number=asked.number,
        model=str(getattr(asked.model, "name", "")),
        scope=asked.scope,
        app=asked.app,
        running=running,
        stage=str(progress.stages.last),
        prompt_tokens=prompt,
        reused_tokens=progress.reused,
        read_tokens=min(prompt, request.held),
        generated_tokens=request.generated,
        queued_s=times.queued_s,
        prefill_s=times.prefill_s,
        first_token_s=None if progress.first_token_at is None else times.first_token_s,
        total_s=times.total_s,
    )
