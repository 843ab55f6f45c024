"""``Request``: one request's arguments, its progress, and its memory on the device. Plain Python.

The *context* of a request is its prompt and the generated tokens. Its KV holds the first tokens of the context, never
all: the last one is still to be read. So the number of tokens to read decides what comes next: with one, a step; with
more, a chunk.
"""

from __future__ import annotations

import itertools
import time
from array import array
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from langchain_gemma_jax.engine.base.events import Finished, Timings
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.drafting.drafter import DraftCount, Drafter
from langchain_gemma_jax.engine.host.warning_sink import WarningSink
from langchain_gemma_jax.engine.requests.clock import Parts, Standstills
from langchain_gemma_jax.engine.requests.mailbox import Mailbox
from langchain_gemma_jax.engine.requests.prompt import Prompt, token_keys
from langchain_gemma_jax.engine.requests.request_constraint import RequestConstraint
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.engine.requests.stop_strings import StopStrings
from langchain_gemma_jax.errors import DeadlineError


class Stage(StrEnum):
    """The current stage of a request."""

    QUEUED = "waiting for its turn"
    NO_ROOM = "waiting for room for its model"
    LOADING = "loading weights"
    READING = "reading"
    WRITING = "writing"


class FinishReason(StrEnum):
    """The reason for the end of a generation."""

    STOP = "stop"  # a stop id, a stop string, or the model's own end of turn
    LENGTH = "length"  # max_tokens, or the context is full


@dataclass(frozen=True)
class TokenLogprobs:
    """The log-probability of a token, and of the most likely ones at its place, by the model's own distribution."""

    id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Piece:
    """The output of one dispatch. Text comes later than its ids if it could be half a character or a stop string."""

    ids: tuple[int, ...]
    text: str
    logprobs: tuple[TokenLogprobs, ...] = ()
    decoded: tuple[str, ...] = field(default=(), repr=False, compare=False)  # the text that each id completed


@dataclass(frozen=True)
class Completion:
    """A finished generation."""

    ids: tuple[int, ...]  # the stop id included, if one ended it
    text: str  # without the stop string
    finish_reason: FinishReason
    stop: str | int | None  # the stop string or id that ended it, if one did
    prompt_tokens: int
    reused_tokens: int  # tokens of the prompt whose KV was kept
    drafted_tokens: int
    accepted_tokens: int
    forced_tokens: int  # tokens to which the grammar left no alternative
    bucket: int  # the tokens that its pages have room for at the end
    compiled: int  # programs that were compiled while it ran, for any request
    timings: Timings
    logprobs: tuple[TokenLogprobs, ...] = ()
    media_tokens: int = 0  # placeholders of pictures and sounds in the prompt
    drafts: Mapping[str, DraftCount] = field(default_factory=dict)  # tokens that each source drafted, if it did
    complete: bool = True  # False: it was cut off at a place where its grammar does not let it end, or by a limit
    decoded: tuple[str, ...] = field(default=(), repr=False, compare=False)  # the text that each id completed

    @property
    def generated_tokens(self) -> int:
        return len(self.ids)


class Decoder(Protocol):
    """A decoder of ids to text, in whole characters. ``StreamDecoder`` is one."""

    def push(self, token_id: int) -> str: ...

    def finish(self) -> str: ...


class Flag:
    """A flag without a lock, because a forked process or a signal handler could wait for a lock for ever."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Set the flag, for good."""
        self._set = True

    def is_set(self) -> bool:
        return self._set


_numbers = itertools.count(1)
_WORTH_TELLING = 0.05  # seconds


@dataclass(frozen=True, eq=False)
class RequestSpec:
    """A caller's arguments, checked. They never change."""

    model: Hashable  # requests for different models never share a step
    prompt: Prompt
    sampling: Sampling
    seed: int
    stop_ids: frozenset[int]  # including the model's own end of turn, unless that is ignored
    max_context: int
    scope: str = ""
    app: str = ""  # the application, for records
    guards: object = None  # policies of guards for this request; None: as configured
    warn_to: WarningSink | None = None  # the receiver of its warnings; None: they are shown in this process
    system: int = 0  # leading tokens of the prompt that are a system prompt
    deadline: float | None = None  # by time.monotonic()
    banned: tuple[int, ...] = ()  # tokens that are never allowed
    ahead: bool = False  # read ahead: it runs when no other request does
    number: int = field(default_factory=lambda: next(_numbers))
    submitted_at: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class Progress:
    """A request's progress, and its output so far."""

    context: list[int]  # prompt and generated
    marks: set[int]  # lengths at which reading pauses, so that a snapshot can be kept
    stages: Parts = field(default_factory=Parts)
    issued: int = 0  # tokens that dispatches in flight will bring
    epoch: int = 0  # the number of times that tokens of dispatches in flight became useless
    draft: tuple[int, ...] = ()  # drafted tokens, to be verified
    wants_state: bool = False  # the next token is read as drafts are: what the model gives for it is kept
    text: list[str] = field(default_factory=list)  # text that was passed to the caller
    decoded: list[str] = field(default_factory=list)  # for each generated token, the text that it completed
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    reused: int = 0
    drafted: int = 0
    accepted: int = 0
    forced: int = 0
    memory_failures: int = 0
    compiles_before: int = 0
    started_at: float | None = None
    first_token_at: float | None = None
    chosen_at: float | None = None  # the first token that was not forced
    token_times: array[float] = field(default_factory=lambda: array("d"))  # the time of each token
    cold: bool = False  # it needed a program that had never run
    watched: bool = False  # guards have checked it
    awaited: bool = False  # another request waits for what it reads


@dataclass(eq=False)
class OnDevice:
    """A request's memory on the device."""

    resident: Resident | None = None  # its KV
    states: object = None  # what the model gave for the tokens that it read last, for its drafter
    knobs: object = None  # its sampling parameters, packed ...
    masked_knobs: object = None  # ... and those with a mask

    def drop_knobs(self) -> None:
        """Drop its sampling parameters on the device. They are copied there again when they are needed."""
        self.knobs = self.masked_knobs = None


@dataclass(eq=False)
class Request:
    """One request, for the owner thread. Callers have a ``Generation``."""

    asked: RequestSpec
    decoder: Decoder
    constraint: RequestConstraint | None = None  # its place in its grammar
    drafter: Drafter | None = None
    mailbox: Mailbox[Piece | Completion | Exception] = field(default_factory=Mailbox)
    cancelled: Flag = field(default_factory=Flag)
    streamed: bool = True  # its caller wants pieces, not only the completion
    stops: StopStrings = field(init=False)
    progress: Progress = field(init=False)
    on_device: OnDevice = field(default_factory=OnDevice)

    def __post_init__(self) -> None:
        asked = self.asked
        self.stops = StopStrings(asked.sampling.stop)
        self.progress = Progress(list(asked.prompt.ids), {asked.system} if asked.system else set())
        self.progress.stages.now(Stage.QUEUED, at=asked.submitted_at)

    @property
    def held(self) -> int:
        """The number of tokens of the context whose KV is on the device."""
        resident = self.on_device.resident
        return 0 if resident is None else len(resident.keys)

    @property
    def capacity(self) -> int:
        """The tokens that its pages have room for; 0 if it has none."""
        resident = self.on_device.resident
        return 0 if resident is None else resident.slots * len(resident.whole)

    def keys(self, start: int = 0, stop: int | None = None) -> array[int]:
        """Return the keys of a part of the context, to compare with kept conversations. Not to be changed."""
        context, keys = self.progress.context, self.asked.prompt.keys
        stop, end = len(context) if stop is None else stop, len(keys)
        if stop <= end:
            return keys if (start, stop) == (0, end) else keys[start:stop]
        return keys[start:end] + token_keys(context[max(start, end) : stop])

    @property
    def to_read(self) -> int:
        return len(self.progress.context) - self.held

    @property
    def generated(self) -> int:
        return len(self.progress.context) - len(self.asked.prompt)

    def overdue(self, now: float) -> bool:
        return self.asked.deadline is not None and now >= self.asked.deadline

    @property
    def room(self) -> int:
        """The number of tokens that the request may still get, those in flight included."""
        asked = self.asked
        limit = asked.max_context - len(asked.prompt)
        if asked.sampling.max_tokens is not None:
            limit = min(limit, asked.sampling.max_tokens)
        return limit - self.generated

    @property
    def gives_way(self) -> bool:
        """True if it runs only when no other request does, and ends for one that needs its place."""
        return self.asked.ahead and not self.progress.awaited

    @property
    def wants_step(self) -> bool:
        """True if its next token can be computed now. With a draft or a mask, dispatches in flight must end first."""
        issued = self.progress.issued
        waits = issued and (self.progress.draft or self.progress.wants_state or self.masked)
        return self.to_read == 1 and self.room > issued and not waits

    @property
    def masked(self) -> bool:
        """True if its next token is drawn with its grammar's mask."""
        return self.constraint is not None and self.constraint.allowed is not None

    def begin_epoch(self) -> None:
        """Begin the next epoch: tokens of dispatches in flight are of no use any more."""
        self.progress.epoch += 1
        self.progress.issued = 0

    @property
    def group(self) -> Hashable:
        """The group of the request. Requests of one group can share a step."""
        return self.asked.model

    def completion(self, reason: FinishReason, stop: str | int | None, now: float, compiled: int = 0) -> Completion:
        """Return the completion for its caller."""
        asked, progress = self.asked, self.progress
        may_end = self.constraint is None or self.constraint.complete
        return Completion(
            ids=tuple(progress.context[len(asked.prompt) :]),
            text="".join(progress.text),
            finish_reason=reason,
            stop=stop,
            prompt_tokens=len(asked.prompt),
            reused_tokens=progress.reused,
            drafted_tokens=progress.drafted,
            accepted_tokens=progress.accepted,
            forced_tokens=progress.forced,
            compiled=compiled,
            bucket=self.capacity,
            timings=self.timings(now),
            logprobs=tuple(progress.logprobs),
            complete=reason is FinishReason.STOP and may_end,
            decoded=tuple(progress.decoded),
            media_tokens=asked.prompt.media_tokens,
            drafts={} if self.drafter is None else dict(self.drafter.counts),
        )

    def timings(self, now: float) -> Timings:
        """Return the durations of its phases. A phase that has not begun yet counts as beginning now."""
        submitted, progress = self.asked.submitted_at, self.progress
        started = now if progress.started_at is None else progress.started_at
        chosen = now if progress.chosen_at is None else progress.chosen_at
        first = now if progress.first_token_at is None else progress.first_token_at
        return Timings(started - submitted, chosen - started, first - submitted, now - submitted)

    def finished(self, outcome: Completion | Exception, now: float) -> Finished:
        """Return the record of its end."""
        asked, progress = self.asked, self.progress
        reason, failed = (
            (outcome.finish_reason.value, False) if isinstance(outcome, Completion) else (type(outcome).__name__, True)
        )
        return Finished(
            model=getattr(asked.model, "name", ""),
            scope=asked.scope,
            app=asked.app,
            outcome=reason,
            failed=failed,
            prompt_tokens=len(asked.prompt),
            reused_tokens=progress.reused,
            generated_tokens=self.generated,
            drafted_tokens=progress.drafted,
            accepted_tokens=progress.accepted,
            forced_tokens=progress.forced,
            compiled=outcome.compiled if isinstance(outcome, Completion) else 0,
            timings=outcome.timings if isinstance(outcome, Completion) else self.timings(now),
            number=asked.number,
            cold=progress.cold,
            token_s=tuple(gaps(progress.token_times)),
            at=now,
        )


def gaps(times: Sequence[float]) -> Iterator[float]:
    """Yield the seconds of each token but the first. Tokens that came together share the time."""
    at = 0
    while at < len(times):
        same = at
        while same < len(times) and times[same] == times[at]:
            same += 1
        if at:
            yield from [(times[at] - times[at - 1]) / (same - at)] * (same - at)
        else:
            yield from [0.0] * (same - 1)  # with the first one
        at = same


def deadline_error(request: Request, standstills: Standstills | None = None) -> DeadlineError:
    """Return the error for a request whose deadline has passed, with its current stage and the parts of its time.

    ``standstills``: times in which the owner thread stood still, and with it each request.
    """
    now, asked = time.monotonic(), request.asked
    spans, spent = request.progress.stages.spans(now), dict[str, float]()
    at = spans[-1].what
    for span in spans:
        stood = [] if standstills is None else standstills.between(span.began, span.end)
        for what, seconds in (
            (span.what, span.end - span.began - sum(each.end - each.began for each in stood)),
            *((each.what, each.end - each.began) for each in stood),
        ):
            spent[what] = spent.get(what, 0.0) + seconds
        at = next((each.what for each in stood if each.end == now), at)
    went = ", ".join(f"{seconds:.1f} s {what}" for what, seconds in spent.items() if seconds >= _WORTH_TELLING)
    return DeadlineError(
        f"The deadline passed {now - asked.submitted_at:.1f} s after submission, while {at}{went and f' ({went})'}, "
        f"with {request.generated} tokens generated after a prompt of {len(asked.prompt)}. Allow more time, ask for "
        "fewer tokens, or warm up first if programs were compiled."
    )
