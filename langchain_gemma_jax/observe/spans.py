"""Spans for OpenTelemetry: the engine's work for a request, as children of the span in which it was submitted.

LangChain's own instrumentation opens a span for each call of a chat model. This module adds no second one for the call:
it shows inside that span where the time went. The owner thread does not have the caller's context, so the context is
taken at submission.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_gemma_jax.engine.base.events import Finished, ModelLoaded, ProgramMade, Refused, Submitted
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.errors import InstallationError
from langchain_gemma_jax.observe.metrics.exemplars import Exemplars
from langchain_gemma_jax.observe.metrics.families import scope_label

_log = OwnLog(__name__)

MOST_WAITING = 10_000


class BackgroundWorker:
    """Runs functions one after the other in a thread of its own, which is started when it is first needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._todo: deque[Callable[[], object]] = deque()
        self._running = False
        self._lock = threading.RLock()  # a signal handler may come a second time
        self._idle = threading.Event()
        self._idle.set()
        self.dropped = 0  # functions that came when the queue was full

    def do(self, work: Callable[[], object]) -> None:
        """Queue a function, and return at once."""
        with self._lock:
            if len(self._todo) >= MOST_WAITING:
                self.dropped += 1
                return
            self._todo.append(work)
            if not self._running:
                self._running = True
                self._idle.clear()
                try:
                    threading.Thread(target=self._live, name=self._name, daemon=True).start()
                except RuntimeError:  # the system has no more threads, or the process ends
                    self.dropped += len(self._todo)
                    self._todo.clear()
                    self._rest()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the queue is empty. Return False if it is not within ``timeout`` seconds."""
        return self._idle.wait(timeout)

    def _rest(self) -> None:
        self._running = False
        self._idle.set()

    def _live(self) -> None:
        while True:
            with self._lock:
                if not self._todo:
                    self._rest()  # the next function starts another thread
                    return
                work = self._todo.popleft()
            try:
                work()
            except Exception as error:  # noqa: BLE001  an exporter is not our code
                _log.warning("a listener in the background raised %s", type(error).__name__)


MOST_OPEN = 10_000  # requests whose end is waited for
REMEMBERED = 512  # compiles, and as many loads
FLUSH_SECONDS = 5.0  # for which the stop function waits for spans that are being made


@dataclass(frozen=True)
class _Asked:
    """The context in which a request was submitted."""

    context: Any
    since: float  # the start of the span in which it was submitted


def trace_engine(provider: Any = None) -> Callable[[], None]:
    """Make spans of what this process's engine does for each request. Return a function that stops it.

        stop = trace_engine()

    The spans "queue", "prefill", "decode" and, if there were any, "load" and "compile" are children of the span that is
    current at submission. If there is none, no spans are made. They hold numbers and names of models and applications,
    a tenant's name as a hash, and no text of a conversation.

    Args:
        provider: the tracer provider. None: OpenTelemetry's own setting.

    Raises:
        InstallationError: OpenTelemetry's API is not installed.
    """
    try:
        from opentelemetry import trace
    except ImportError as error:
        raise InstallationError("Spans need OpenTelemetry's API: pip install 'langchain-gemma-jax[otel]'.") from error
    from langchain_gemma_jax.engine.api.process import engine

    tracer = trace.get_tracer("langchain_gemma_jax", tracer_provider=provider)
    spans, events = _Spans(trace, tracer, engine().companion(Exemplars)), engine().events
    ends = [
        events.subscribe(Submitted, spans.submitted),
        events.subscribe(Refused, spans.refused),
        events.subscribe(Finished, spans.finished),
        events.subscribe(ProgramMade, spans.made),
        events.subscribe(ModelLoaded, spans.loaded),
    ]

    def stop() -> None:
        for end in ends:
            end()
        spans.worker.flush(FLUSH_SECONDS)

    return stop


class _Spans:
    """Makes a request's spans when it is over."""

    def __init__(self, trace: Any, tracer: Any, exemplars: Exemplars) -> None:
        self._trace, self._tracer, self._exemplars = trace, tracer, exemplars
        self._asked: OrderedDict[int, _Asked] = OrderedDict()
        self._compiles: deque[ProgramMade] = deque(maxlen=REMEMBERED)
        self._loads: deque[ModelLoaded] = deque(maxlen=REMEMBERED)
        self._lock = threading.RLock()
        self.worker = BackgroundWorker("gemma-jax-spans")
        self._wall = time.time_ns() - time.monotonic_ns()

    def submitted(self, record: Submitted) -> None:
        """Keep the context of a submitted request. Runs in the caller's thread."""
        span = self._trace.get_current_span()
        if not span.get_span_context().is_valid or not span.is_recording():
            return
        began = getattr(span, "start_time", None)
        since = record.at if began is None else (began - self._wall) / 1e9
        with self._lock:
            self._asked[record.number] = _Asked(self._trace.set_span_in_context(span), since)
            while len(self._asked) > MOST_OPEN:
                self._asked.popitem(last=False)

    def refused(self, record: Refused) -> None:
        """Forget a request that was refused."""
        with self._lock:
            self._asked.pop(record.number, None)

    def made(self, record: ProgramMade) -> None:
        """Keep the record of a program that was made, for the requests that waited for it."""
        self._compiles.append(record)

    def loaded(self, record: ModelLoaded) -> None:
        """Keep the record of a loaded model."""
        self._loads.append(record)

    def finished(self, record: Finished) -> None:
        """Queue making a request's spans. It is not done on the owner thread, since exporters are not our code."""
        with self._lock:
            asked = self._asked.pop(record.number, None)
        if asked is not None:
            around = self._trace.get_current_span(asked.context).get_span_context()
            if around.trace_flags.sampled:
                self._exemplars.note(record, f"{around.trace_id:032x}")
            self.worker.do(lambda: self._make(record, asked))

    def _make(self, record: Finished, asked: _Asked) -> None:
        times, began = record.timings, record.at - record.timings.total_s
        reading, decoding = began + times.queued_s, began + times.queued_s + times.prefill_s
        about = {
            "gen_ai.request.model": record.model,
            "gemma_jax.app": record.app,
            "gemma_jax.scope": scope_label(record.scope),
            "gemma_jax.cold": record.cold,
        }
        error = record.outcome if record.failed else ""
        waited = reading >= record.at  # its prompt was never begun
        self._span("queue", began, reading, asked, about, error=error if waited else "")
        if not waited:
            read = record.prompt_tokens - record.reused_tokens
            prompt = {"gemma_jax.tokens.read": read, "gemma_jax.tokens.reused": record.reused_tokens}
            self._span("prefill", reading, decoding, asked, about | prompt)
            answer = {
                "gemma_jax.tokens.generated": record.generated_tokens,
                "gemma_jax.tokens.drafted": record.drafted_tokens,
                "gemma_jax.tokens.accepted": record.accepted_tokens,
                "gemma_jax.tokens.forced": record.forced_tokens,
                "gemma_jax.outcome": record.outcome,
            }
            self._span("decode", decoding, record.at, asked, about | answer, error=error)
        for load in list(self._loads):
            if load.model == record.model and asked.since <= load.at <= record.at:
                self._span("load", load.at - load.seconds, load.at, asked, {"gen_ai.request.model": load.model})
        for made in list(self._compiles):
            if made.model == record.model and made.at > began and made.at - made.seconds < record.at:
                what = {"gemma_jax.program": made.kind, "gemma_jax.from_disk": made.fetched}
                self._span("compile", made.at - made.seconds, made.at, asked, what)

    def _span(
        self, name: str, begin: float, end: float, asked: _Asked, about: dict[str, Any], *, error: str = ""
    ) -> None:
        span = self._tracer.start_span(
            name, context=asked.context, start_time=self._at(begin), attributes=about, record_exception=False
        )
        if error:
            span.set_attribute("error.type", error)
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
        span.end(end_time=self._at(max(begin, end)))

    def _at(self, monotonic: float) -> int:
        return int(monotonic * 1e9) + self._wall
