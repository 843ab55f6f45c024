"""Runs one model's work on the device: a chunk, a step, a verification; and brings home what came of it.

Steps are handed over one ahead: while one runs, the results of the one before are looked at. The
tokens of a step feed the next one on the device, so nothing has to be copied there between two steps
of the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import jax
import numpy as np

from langchain_gemma_jax.engine.base.ladders import STEP_SLACK, Ladders, TextBatch
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.conversations.kv_store import KvStore
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.programs import MAX_STOPS, RowKnobs, Shape
from langchain_gemma_jax.engine.device.sampling import Picked
from langchain_gemma_jax.engine.device.sequence_kv import SequenceKV
from langchain_gemma_jax.engine.executables.programs_at_hand import ProgramsAtHand
from langchain_gemma_jax.engine.requests.prompt import PlacedSpan
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.engine.steps.in_flight import InFlight, epochs_of
from langchain_gemma_jax.engine.steps.media_encoding import MediaEncoding
from langchain_gemma_jax.engine.steps.row_knobs import KnobsOnDevice
from langchain_gemma_jax.models.gemma.forward import Params

Rows: TypeAlias = tuple[SequenceKV, ...]

MAX_TAKEN_BACK = STEP_SLACK - 2  # tokens: the first stays, and rows that are done write one place further


class Runner:
    """The device side of one model, for the owner thread."""

    def __init__(
        self,
        params: Params,
        shape: Shape,
        ladders: Ladders,
        device: DeviceAccess,
        kv_store: KvStore,
        metrics: Metrics,
        *,
        drafts: bool,
        media: MediaEncoding | None = None,
    ) -> None:
        self.ladders, self.kv_store, self.drafts = ladders, kv_store, drafts and ladders.draft > 0
        self.params, self.device, self._metrics, self.media = params, device, metrics, media
        self.library = kv_store.held.library
        self.loop_steps = shape.loop_steps  # tokens that a step can make
        self.knobs = KnobsOnDevice(device, shape.architecture.vocab_size)
        self._at_hand = ProgramsAtHand(self.library, ladders, device, loops=shape.loop_steps > 1)
        self._dispatch_tokens = dispatch_tokens(device.placement.platform)
        self._last: InFlight | None = None  # the step that the next one can go on from, on the device

    @property
    def programs_seen(self) -> int:
        """The number of programs that have run, of ``bound`` at most."""
        return len(self.device.seen)

    @property
    def bound(self) -> int:
        return len(self.device.bound)

    def close(self) -> None:
        """Free its conversations."""
        self._last = None
        if self.media is not None:
            self.media.forget()
        self.kv_store.held.clear()

    def _chunk_cost(self, size: int) -> float:
        return size + self._dispatch_tokens

    # Run.

    def embed(self, batch: TextBatch, texts: Sequence[Sequence[int]]) -> jax.Array:
        """Read whole texts, of which a model makes vectors: one a row, and rows of padding behind them."""
        tokens, count = np.zeros((batch.rows, batch.tokens), np.int32), np.zeros(batch.rows, np.int32)
        for row, text in enumerate(batch.texts):
            count[row] = len(texts[text])
            tokens[row, : count[row]] = texts[text]
        self.device.asked_by = ()
        found: jax.Array = self.run(batch.key, self.params, *self.device.put((tokens, count)))
        return found

    def read(self, request: Request) -> InFlight | None:
        """Read the next chunk of a request's context. After the last one a token is picked."""
        resident, progress = _resident(request), request.progress
        held, total = len(resident.keys), len(progress.context)
        if self._last is not None and request in self._last.requests:
            self._last = None  # it starts again: that step is not what its next one follows
        ahead = tuple(placed for placed in request.asked.prompt.media if placed.end > held)
        if ahead and ahead[0].start <= held:
            return self._read_medium(request, ahead)
        stops = (*progress.marks, *(placed.start for placed in ahead[:1]))
        until = min((stop for stop in stops if held < stop < total), default=total)
        capacity, count = resident.capacity, until - held
        best = self.ladders.plan_chunks(held, count, capacity, self._chunk_cost)
        media = () if self.media is None else self.media.keys(ahead, capacity)
        sizes = self._at_hand.chunks(capacity, held, count, best)
        chunks = self.ladders.plan_chunks(held, count, capacity, self._chunk_cost, sizes)
        now, later = ({each.size for each in plan} for plan in (chunks, best))
        self._at_hand.needed(request, now, capacity, steps=request.room > 1, later=later, media=media)
        chunk = chunks[0]
        if self.kv_store.must_keep_before(resident, chunk.tokens):
            self.kv_store.keep(resident)
        end = held + chunk.tokens
        ids = progress.context[held:end]
        tokens = np.zeros((1, chunk.size), np.int32)
        tokens[0, : chunk.tokens] = ids
        hidden, ends, resident.handle = self.run(
            ("read", chunk.size, resident.capacity),
            self.params,
            *self.device.put((tokens, np.array([held], np.int32), np.array([chunk.tokens], np.int32))),
            resident.handle,
        )
        return self._after_chunk(request, end, hidden, ends)

    def media_are_there(self, request: Request) -> bool | None:
        """Return True if the encoders of a request's media are in memory, False while they are read. None: no room."""
        placed = tuple(each for each in request.asked.prompt.media if each.end > request.held)
        return True if self.media is None or not placed else self.media.there(placed)

    def _read_medium(self, request: Request, ahead: Sequence[PlacedSpan]) -> InFlight | None:
        """Read a picture or a sound, whole; or encode a part of it, as long as it is not encoded."""
        if self.media is None:
            raise TypeError(f"request {request.asked.number} has media, and its model has no encoders")
        resident, placed = _resident(request), ahead[0]
        key = self.media.reading(placed.span, resident.capacity)
        needed = self.media.keys(ahead, resident.capacity)
        self._at_hand.needed(request, set(), resident.capacity, steps=request.room > 1, media=needed)
        if (vectors := self.media.encoded(placed.span)) is None:
            return None
        held, count = len(resident.keys), len(placed.span.ids)
        if held != placed.start:
            raise RuntimeError(f"a medium at place {placed.start} would be read from {held} on, which is within it")
        if self.kv_store.must_keep_before(resident, count):
            self.kv_store.keep(resident)
        size = int(key[2])
        tokens, padded = np.zeros((1, size), np.int32), np.zeros((1, size, vectors.shape[1]), np.float32)
        tokens[0, :count], padded[0, :count] = placed.span.ids, vectors
        arrays = self.device.put((tokens, padded, np.array([held], np.int32), np.array([count], np.int32)))
        hidden, ends, resident.handle = self.run(key, self.params, *arrays, resident.handle)
        self._metrics.media_tokens += count
        return self._after_chunk(request, placed.end, hidden, ends)

    def _after_chunk(self, request: Request, end: int, hidden: jax.Array, ends: jax.Array) -> InFlight | None:
        """Note that a request's context was read up to there. After the last chunk a token is picked."""
        resident, progress = _resident(request), request.progress
        held, total = len(resident.keys), len(progress.context)
        self.kv_store.index.extend(resident, request.keys(held, end))
        self._count_prompt(request, held, end - held)
        flight = None
        if end == total:
            picked = self._pick(hidden, ends, (resident.handle,), (self.knobs.of(request),))
            progress.issued = 1
            flight = InFlight((request,), picked, (progress.epoch,))
        # After the pick: nobody waits for a snapshot. What a grammar appended behind what was read before is no turn.
        if end in progress.marks or (end == total and held < len(request.asked.prompt)):
            self._keep_turn(resident)
        return flight

    def together(self, requests: tuple[Request, ...], alike: int) -> tuple[int, int]:
        """Return how many of these share the next step, and its rows: the best at hand that there is memory for.

        ``alike`` counts those that will soon be ready to share a step, too.
        """
        capacity, count = _resident(requests[0]).capacity, len(requests)
        choices = self._at_hand.rows(count, capacity, max(alike, count))
        fitting = (rows for rows in choices if rows <= count or self.kv_store.pad(capacity, rows - count))
        rows = next(fitting, 1)
        return min(rows, count), rows

    def step(self, requests: tuple[Request, ...], rows: int | None = None) -> InFlight:
        """One token for each request, or several where the loop on the device is faster. All of them have room."""
        self._metrics.rows.add(len(requests))
        residents = [_resident(request) for request in requests]
        capacity, rows = residents[0].capacity, rows or self.ladders.rows_for(len(requests))
        padding = self.kv_store.held.padding(capacity, rows - len(requests))
        sequences = tuple(cast("SequenceKV", resident.handle) for resident in residents) + tuple(padding)
        row_knobs = self.knobs.of_rows(requests, len(sequences))
        for request, resident in zip(requests, residents, strict=True):
            self._count_prompt(request, len(resident.keys) + request.progress.issued, 1)
        if self.loop_steps > 1:
            flight, sequences = self._run_loop(requests, residents, sequences, row_knobs, capacity)
        else:
            flight, sequences = self._run_step(requests, residents, sequences, row_knobs, capacity)
        for resident, sequence in zip(residents, sequences, strict=False):
            resident.handle = sequence
        self.kv_store.held.put_padding(capacity, sequences[len(requests) :])
        return flight

    def follows(self, requests: tuple[Request, ...], rows: int | None = None) -> bool:
        """Return True if a step of these in ``rows`` rows can go on, on the device, from the last. None: as many."""
        last = self._last
        if last is None or last.requests != requests or last.epochs != epochs_of(requests):
            return False
        return rows is None or last.rows == rows

    def verify(self, request: Request) -> InFlight:
        """Read a request's newest token and its draft, and pick behind each of them."""
        resident = _resident(request)
        if not self._at_hand.verifies(resident.capacity):
            request.progress.draft = ()
            return self.step((request,), 1)
        held = len(resident.keys)
        draft = request.progress.draft
        tokens = np.zeros((1, self.ladders.draft + 1), np.int32)
        tokens[0, : 1 + len(draft)] = (request.progress.context[-1], *draft)
        count = np.array([1 + len(draft)], np.int32)
        arrays = self.device.put((tokens, np.array([held], np.int32), count), for_step=True)
        hidden, ends, resident.handle = self.run(
            ("verify", self.ladders.draft + 1, resident.capacity), self.params, *arrays, resident.handle
        )
        rows = self.ladders.draft + 1
        picked = self._pick(hidden, ends, (resident.handle,) * rows, (self.knobs.of(request),) * rows)
        self._last = None
        self._metrics.steps += 1
        resident.written = max(resident.written, held + 1 + len(draft))
        request.progress.issued, request.progress.draft = 1 + len(draft), ()
        return InFlight((request,), picked, (request.progress.epoch,), draft)

    def learn(self, request: Request) -> None:
        """Note, after a request's newest tokens were taken, that its KV holds all of the context but the last one."""
        resident = _resident(request)
        self.kv_store.index.extend(resident, request.keys(len(resident.keys), len(request.progress.context) - 1))

    def draw_again(self, request: Request) -> None:
        """Drop the tokens drawn after a request's newest one. That one is read again, if its KV is there already."""
        resident = _resident(request)
        if request.to_read == 0:
            self.kv_store.index.truncate(resident, len(resident.keys) - 1)

    def forget_feed(self) -> None:
        """Have the next step start from the host's tokens."""
        self._last = None

    def _run_step(
        self,
        requests: tuple[Request, ...],
        residents: list[Resident],
        sequences: Rows,
        row_knobs: tuple[RowKnobs, ...],
        capacity: int,
    ) -> tuple[InFlight, Rows]:
        if self.follows(requests, len(sequences)) and self._last is not None and self._last.ends is not None:
            tokens, ends = self._last.picked.tokens, self._last.ends
        else:
            tokens, ends = self._newest(requests, residents, len(sequences))
        key = ("step", len(sequences), capacity)
        if len(sequences) == 1:
            picked, ends, sequences = self.run(key, self.params, tokens, ends, sequences, row_knobs)
        else:
            hidden, ends, sequences = self.run(key, self.params, tokens, ends, sequences)
            picked = self._pick(hidden, ends, sequences, row_knobs)
        for request, resident in zip(requests, residents, strict=True):
            request.progress.issued += 1
            resident.written = max(resident.written, len(resident.keys) + request.progress.issued)
        self._metrics.steps += 1
        self._last = InFlight(requests, picked, epochs_of(requests), ends=ends)
        return self._last, sequences

    def _run_loop(
        self,
        requests: tuple[Request, ...],
        residents: list[Resident],
        sequences: Rows,
        row_knobs: tuple[RowKnobs, ...],
        capacity: int,
    ) -> tuple[InFlight, Rows]:
        limits = np.zeros(len(sequences), np.int32)
        stops = np.full((len(sequences), MAX_STOPS), -1, np.int32)
        for row, (request, resident) in enumerate(zip(requests, residents, strict=True)):
            limits[row] = min(self._at_once(request), request.room, capacity - len(resident.keys))
            known = sorted(request.asked.stop_ids)[:MAX_STOPS]
            stops[row, : len(known)] = known
            request.progress.issued = int(limits[row])
            # While others go on, a row that is done reads its newest token too, one place further.
            resident.written = max(
                resident.written, len(resident.keys) + request.progress.issued + (len(sequences) > 1)
            )
        tokens, ends = self._newest(requests, residents, len(sequences))
        picked, got, sequences = self.run(
            ("step", len(sequences), capacity),
            self.params,
            tokens,
            ends,
            *self.device.put((limits, stops), for_step=True),
            sequences,
            row_knobs,
        )
        self._metrics.steps += int(limits.max())
        return InFlight(requests, picked, epochs_of(requests), got=got), sequences

    def _at_once(self, request: Request) -> int:
        """Return how many of a loop's steps a request takes part in. Illegal tokens are taken back: see ``Rings``."""
        if request.constraint is None:
            return self.loop_steps
        return 1 if request.masked else min(self.loop_steps, MAX_TAKEN_BACK)

    def _pick(
        self, hidden: jax.Array, ends: jax.Array, sequences: Sequence[object], rows: Sequence[RowKnobs]
    ) -> Picked:
        ids = tuple(cast("SequenceKV", sequence).ids for sequence in sequences)
        picked: Picked = self.run(("pick", len(rows)), self.params, hidden, ends, ids, tuple(rows))
        return picked

    def _newest(
        self, requests: tuple[Request, ...], residents: list[Resident], rows: int
    ) -> tuple[jax.Array, jax.Array]:
        tokens, ends = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
        for row, (request, resident) in enumerate(zip(requests, residents, strict=True)):
            tokens[row], ends[row] = request.progress.context[-1], len(resident.keys)
        found = self.device.put((tokens, ends), for_step=True)
        return cast("tuple[jax.Array, jax.Array]", found)

    def _keep_turn(self, resident: Resident) -> None:
        """Keep a snapshot of rings at a turn's end, once they overwrite. Until then they hold all that is needed."""
        if resident.written > (self.kv_store.index.rings.size or 0):
            self.kv_store.keep(resident)

    def _count_prompt(self, request: Request, held: int, tokens: int) -> None:
        self._metrics.prefilled_tokens += max(0, min(tokens, len(request.asked.prompt) - held))

    def run(self, key: ProgramKey, *args: object) -> Any:
        return self.device.run(key, self.library.of(key), *args)


def dispatch_tokens(platform: str) -> int:
    """Return a chunk's fixed cost, in tokens: 25 to 37 on the CPU (measured, 10M to 270M), more elsewhere."""
    return 32 if platform == "cpu" else 256


def _resident(request: Request) -> Resident:
    if request.on_device.resident is None:
        raise TypeError(f"request {request.asked.number} runs without memory")
    return request.on_device.resident
