"""Runs one model's work on the device: a chunk, a step, a verification; and brings home what came of it.

Steps are handed over one ahead: while one runs, the results of the one before are looked at. The
tokens of a step feed the next one on the device, so nothing has to be copied there between two steps
of the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import jax
import numpy as np

from langchain_gemma_jax.engine.base.ladders import FEW_TOKENS, Ladders, TextBatch
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.conversations.kv_store import KvStore
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.page_pool import Tables
from langchain_gemma_jax.engine.device.programs import MAX_STOPS, RowSettings, Shape
from langchain_gemma_jax.engine.device.sampling import Picked
from langchain_gemma_jax.engine.executables.programs_at_hand import ProgramsAtHand
from langchain_gemma_jax.engine.requests.prompt import PlacedSpan
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.engine.steps.adapter_slots import AdapterSlots
from langchain_gemma_jax.engine.steps.chains import Chains, States
from langchain_gemma_jax.engine.steps.in_flight import InFlight, epochs_of
from langchain_gemma_jax.engine.steps.media_encoding import MediaEncoding
from langchain_gemma_jax.engine.steps.prompt_chunks import PromptChunks, media_ahead
from langchain_gemma_jax.engine.steps.row_knobs import KnobsOnDevice
from langchain_gemma_jax.engine.steps.row_programs import RowPrograms
from langchain_gemma_jax.models.gemma.forward import Params

MAX_TAKEN_BACK = 14  # tokens of a loop's that a grammar may take back: they are cheap to draw again


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
        drafter: Params | None = None,
        adapters: AdapterSlots | None = None,
    ) -> None:
        """``drafter``: the weights of the drafter beside the model, if it is used. ``adapters``: if it takes any."""
        self.ladders, self.kv_store, self.drafts = ladders, kv_store, drafts and ladders.draft > 0
        self.params, self.device, self._metrics, self.media = params, device, metrics, media
        self.library = kv_store.held.library
        self.loop_steps = shape.loop_steps  # tokens that a step can make
        self.knobs = KnobsOnDevice(device, shape.architecture.vocab_size)
        self._at_hand = ProgramsAtHand(self.library, ladders, device, loops=shape.loop_steps > 1)
        self.rows = RowPrograms(params, self._at_hand, adapters)
        self.chunks = PromptChunks(ladders, self.rows.of, dispatch_tokens(device.placement.platform))
        self.chains = None if drafter is None else Chains(params, drafter, ladders, device, kv_store, self._at_hand)
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
        self.rows.forget()
        self.kv_store.held.clear()

    # Run.

    def embed(self, batch: TextBatch, texts: Sequence[Sequence[int]]) -> jax.Array:
        """Read whole texts, of which a model makes vectors: one a row, and rows of padding behind them."""
        tokens, count = np.zeros((batch.rows, batch.tokens), np.int32), np.zeros(batch.rows, np.int32)
        for row, text in enumerate(batch.texts):
            count[row] = len(texts[text])
            tokens[row, : count[row]] = texts[text]
        self._metrics.count_positions(batch.rows * batch.tokens, int(count.sum()))
        self.device.asked_by = ()
        found: jax.Array = self.run(batch.key, self.params, *self.device.put((tokens, count)))
        return found

    def read(self, request: Request) -> InFlight | None:
        """Read the next chunk of a request's context. After the last one a token is picked."""
        resident = _resident(request)
        held = len(resident.keys)
        if self._last is not None and request in self._last.requests:
            self._last = None  # it starts again: that step is not what its next one follows
        ahead = media_ahead(request)
        if ahead and ahead[0].start <= held:
            return self._read_medium(request, ahead)
        best, chunks = self.chunks.best(request), self.chunks.take(request)
        capacity = self.chunks.capacity(request)
        media = () if self.media is None else self.media.keys(ahead, capacity)
        now, later = ({each.size for each in plan} for plan in (chunks, best))
        self.rows.of(request).needed(request, now, capacity, steps=request.room > 1, later=later, media=media)
        ids = request.progress.context[held : held + chunks[0].tokens]
        hidden, ends = self._read_chunk(request, ids, chunks[0].size, first=len(ids) - 1, capacity=capacity)
        self.device.one_ahead(None if held + len(ids) == len(request.progress.context) else ends)
        return self._after_chunk(request, held + len(ids), hidden, ends)

    def _read_chunk(
        self, request: Request, ids: Sequence[int], size: int, *, first: int, capacity: int
    ) -> tuple[jax.Array, jax.Array]:
        held, resident = self.kv_store.held.arrays, _resident(request)
        key = self.rows.key((request,), "read", size, capacity)
        self._metrics.count_positions(size, len(ids))
        tokens = np.zeros((1, size), np.int32)
        tokens[0, : len(ids)] = ids
        numbers = (np.array([len(resident.keys)], np.int32), np.array([len(ids)], np.int32), np.array(first, np.int32))
        arrays = self.device.put((tokens, *numbers), for_step=size <= FEW_TOKENS)
        tables = held.tables([resident], 1, capacity)
        hidden, ends, held.pool = self.run(key, self.rows.params((request,), 1), *arrays, tables, held.pool)
        return hidden, ends

    def media_are_there(self, request: Request) -> bool | None:
        """Return True if the encoders of a request's media are in memory, False while they are read. None: no room."""
        placed = tuple(each for each in request.asked.prompt.media if each.end > request.held)
        return True if self.media is None or not placed else self.media.there(placed)

    def _read_medium(self, request: Request, ahead: Sequence[PlacedSpan]) -> InFlight | None:
        """Read a picture or a sound, whole; or encode a part of it, as long as it is not encoded."""
        if self.media is None:
            raise TypeError(f"request {request.asked.number} has media, and its model has no encoders")
        resident, placed = _resident(request), ahead[0]
        capacity, kept = self.chunks.capacity(request), self.kv_store.held.arrays
        key = self.media.reading(placed.span, capacity)
        needed = self.media.keys(ahead, capacity)
        self.rows.of(request).needed(request, set(), capacity, steps=request.room > 1, media=needed)
        if (vectors := self.media.encoded(placed.span)) is None:
            return None
        held, count = len(resident.keys), len(placed.span.ids)
        if held != placed.start:
            raise RuntimeError(f"a medium at place {placed.start} would be read from {held} on, which is within it")
        size = int(key[2])
        self._metrics.count_positions(size, count)
        tokens, padded = np.zeros((1, size), np.int32), np.zeros((1, size, vectors.shape[1]), np.float32)
        tokens[0, :count], padded[0, : len(vectors)] = placed.span.ids, vectors
        arrays = self.device.put((tokens, padded, np.array([held], np.int32), np.array([count], np.int32)))
        tables = kept.tables([resident], 1, capacity)
        key, params = self.rows.key((request,), *key), self.rows.params((request,), 1)
        hidden, ends, kept.pool = self.run(key, params, *arrays, tables, kept.pool)
        self._metrics.media_tokens += len(vectors)
        return self._after_chunk(request, placed.end, hidden, ends)

    def _after_chunk(self, request: Request, end: int, hidden: jax.Array, ends: jax.Array) -> InFlight | None:
        """Note that a request's context was read up to there. After the last chunk a token is picked."""
        resident, progress = _resident(request), request.progress
        held, total = len(resident.keys), len(progress.context)
        self.kv_store.index.extend(resident, request.keys(held, end))
        self._count_prompt(request, held, end - held)
        flight = None
        if end == total:
            picked = self._pick(hidden, ends, (request,), self.ladders.picks)
            request.on_device.states = States(hidden, end - 1, 1)
            progress.issued = 1
            flight = InFlight((request,), picked, (progress.epoch,))
        # What a grammar appended behind what was read before is no turn.
        if end in progress.marks or (end == total and held < len(request.asked.prompt)):
            self.kv_store.keep(resident)
        return flight

    def together(self, requests: tuple[Request, ...], alike: int) -> tuple[int, int]:
        """Return how many of these share the next step, and its rows: the best at hand that there is memory for.

        ``alike`` counts those that will soon be ready to share a step, too.
        """
        count = len(requests)
        rows = self.rows.of(*requests).rows(count, self._capacity_of(requests), max(alike, count))[0]
        return min(rows, count), rows

    def step(self, requests: tuple[Request, ...], rows: int | None = None) -> InFlight:
        """One token for each request, or several where the loop on the device is faster. All of them have room."""
        self._metrics.rows.add(len(requests))
        residents = [_resident(request) for request in requests]
        for request in requests:
            request.on_device.states = None
        capacity, rows = self._capacity_of(requests), rows or self.ladders.rows_for(len(requests))
        tables = self.kv_store.held.arrays.tables(residents, rows, capacity)
        settings = self.knobs.of_rows(requests, rows)
        for request, resident in zip(requests, residents, strict=True):
            self._count_prompt(request, len(resident.keys) + request.progress.issued, 1)
        run = self._run_loop if self.loop_steps > 1 else self._run_step
        return run(requests, residents, rows, capacity, tables, settings)

    def _capacity_of(self, requests: tuple[Request, ...]) -> int:
        """Return how many tokens the tables for a step have to reach."""
        ends = (request.held + request.progress.issued + self.loop_steps for request in requests)
        return self.ladders.capacity(min(max(ends), self.ladders.capacities[-1]))

    def follows(self, requests: tuple[Request, ...], rows: int | None = None) -> bool:
        """Return True if a step of these in ``rows`` rows can go on, on the device, from the last. None: as many."""
        last = self._last
        if last is None or last.requests != requests or last.epochs != epochs_of(requests):
            return False
        return rows is None or last.rows == rows

    def verify(self, request: Request) -> InFlight:
        """Read a request's newest token and its draft, and pick behind each of them."""
        held = request.held
        draft, size = request.progress.draft, self.ladders.check
        capacity = self.ladders.capacity(held + 1 + len(draft))
        if not self.rows.of(request).verifies(capacity):
            request.progress.draft, request.progress.wants_state = (), False
            return self.step((request,), 1)
        ids = (request.progress.context[-1], *draft)
        hidden, ends = self._read_chunk(request, ids, size, first=0, capacity=capacity)
        picked = self._pick(hidden, ends, (request,) * len(ids), self.ladders.picks)
        self._last = None
        self._metrics.steps += 1
        request.on_device.states = States(hidden, held, len(ids))
        request.progress.issued, request.progress.draft, request.progress.wants_state = 1 + len(draft), (), False
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
        self.device.one_ahead(None)

    def _run_step(
        self,
        requests: tuple[Request, ...],
        residents: list[Resident],
        rows: int,
        capacity: int,
        tables: Tables,
        settings: RowSettings,
    ) -> InFlight:
        if self.follows(requests, rows) and self._last is not None and self._last.ends is not None:
            tokens, ends = self._last.picked.tokens, self._last.ends
        else:
            tokens, ends = self._newest(requests, residents, rows)
        held, alive = self.kv_store.held.arrays, self.knobs.alive(rows, len(requests))
        key = self.rows.key(requests, "step", rows, capacity)
        given = (self.rows.params(requests, rows), tokens, ends, alive, tables, held.pool)
        if rows == 1:
            picked, ends, held.pool = self.run(key, *given, settings)
        else:
            hidden, ends, held.pool = self.run(key, *given)
            picked = self._pick(hidden, ends, requests, rows)
        for request in requests:
            request.progress.issued += 1
        self._metrics.steps += 1
        self._metrics.count_positions(rows, len(requests))
        self._last = InFlight(requests, picked, epochs_of(requests), ends=ends)
        return self._last

    def _run_loop(
        self,
        requests: tuple[Request, ...],
        residents: list[Resident],
        rows: int,
        capacity: int,
        tables: Tables,
        settings: RowSettings,
    ) -> InFlight:
        held = self.kv_store.held.arrays
        limits = np.zeros(rows, np.int32)
        stops = np.full((rows, MAX_STOPS), -1, np.int32)
        for row, (request, resident) in enumerate(zip(requests, residents, strict=True)):
            limits[row] = min(self._at_once(request), request.room, capacity - len(resident.keys))
            known = sorted(request.asked.stop_ids)[:MAX_STOPS]
            stops[row, : len(known)] = known
            request.progress.issued = int(limits[row])
        tokens, ends = self._newest(requests, residents, rows)
        picked, got, held.pool = self.run(
            self.rows.key(requests, "step", rows, capacity),
            self.rows.params(requests, rows),
            tokens,
            ends,
            *self.device.put((limits, stops), for_step=True),
            tables,
            held.pool,
            settings,
        )
        self._metrics.steps += (steps := int(limits.max()))
        self._metrics.count_positions(rows * steps, int(limits.sum()))
        return InFlight(requests, picked, epochs_of(requests), got=got)

    def _at_once(self, request: Request) -> int:
        """Return how many of a loop's steps a request takes part in. Illegal tokens are taken back."""
        if request.constraint is None:
            return self.loop_steps
        return 1 if request.masked else min(self.loop_steps, MAX_TAKEN_BACK)

    def _pick(self, hidden: jax.Array, ends: jax.Array, requests: Sequence[Request], rows: int) -> Picked:
        """Pick the tokens that follow hidden states: of the requests in the first rows, the others are unused."""
        held = self.kv_store.held.arrays
        residents = [_resident(request) for request in requests]
        whole = held.tables(residents, rows, self.ladders.capacities[-1]).whole
        real, settings = self.knobs.number(len(requests)), self.knobs.of_rows(requests, rows)
        picked: Picked = self.run(("pick", rows), self.params, hidden, ends, real, whole, held.pool.ids, settings)
        return picked

    def _newest(
        self, requests: tuple[Request, ...], residents: list[Resident], rows: int
    ) -> tuple[jax.Array, jax.Array]:
        tokens, ends = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
        for row, (request, resident) in enumerate(zip(requests, residents, strict=True)):
            tokens[row], ends[row] = request.progress.context[-1], len(resident.keys)
        found = self.device.put((tokens, ends), for_step=True)
        return cast("tuple[jax.Array, jax.Array]", found)

    def _count_prompt(self, request: Request, held: int, tokens: int) -> None:
        self._metrics.prefilled_tokens += max(0, min(tokens, len(request.asked.prompt) - held))

    def run(self, key: ProgramKey, *args: object) -> Any:
        return self.device.run(key, self.library.of(key, self.device.waited), *args)


def dispatch_tokens(platform: str) -> int:
    """Return a chunk's fixed cost, in tokens: 25 to 37 on the CPU (measured, 10M to 270M), more elsewhere."""
    return 32 if platform == "cpu" else 256


def _resident(request: Request) -> Resident:
    if request.on_device.resident is None:
        raise TypeError(f"request {request.asked.number} runs without memory")
    return request.on_device.resident
