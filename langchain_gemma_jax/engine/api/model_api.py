"""The models that an engine serves: loaded, kept, evicted, and loaded again when somebody asks.

A ``Served`` stays what it is while its weights come and go. What is kept of an evicted model is what costs
nothing on the device: its tokenizer, its grammars, its conversations in host memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.engine.api.loads_under_way import Load
from langchain_gemma_jax.engine.api.model_loading import WAIT_SECONDS, WAITING, Arrivals, LoadKey, left, until_when
from langchain_gemma_jax.engine.base.settings import checked_seconds
from langchain_gemma_jax.engine.host.error_copies import again
from langchain_gemma_jax.engine.host.gc_pause import collected_later, let_go
from langchain_gemma_jax.engine.requests.clock import ADVICE, Clock, Steps, await_for, wait_for
from langchain_gemma_jax.engine.residency.ledger_entry import Entry, State
from langchain_gemma_jax.engine.residency.model_record import Known
from langchain_gemma_jax.engine.residency.model_status import ModelStatus, status_of
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.errors import ClosedError, InputError
from langchain_gemma_jax.models.embedded import embedded_folder
from langchain_gemma_jax.models.model import Model
from langchain_gemma_jax.models.stopping import StoppedError


class Residents(Arrivals):
    """The part of an engine that callers load and unload models with."""

    def load(
        self,
        source: str | os.PathLike[str],
        *,
        dtype: str | None = None,
        revision: str | None = None,
        weights: str | None = None,
        timeout: float | None = WAIT_SECONDS,
    ) -> Served:
        """A model by folder or Hub id, loaded once however many threads ask; the arguments are ``load_model``'s.

        It is in memory when this returns, and stays until the memory is needed for another one. A model that was
        evicted is loaded again. Where others use the memory, this waits.

        Whoever waits does so for ``timeout`` seconds at most, downloads included; None: for ever. Where nothing is
        said, five minutes for room in memory, and as long as it takes for all else. When nobody waits any more, a
        download ends, and so does the waiting for room; weights that are being read are there for the next call.

        If loading fails, everybody who waits for it gets the error, and the next call tries again.

        Raises:
            DeviceMemoryError: it does not fit beside what never goes. DeadlineError: the time was up.
        """
        clock = Clock(timeout)
        return self._wait_here(
            self.arriving(source, dtype=dtype, revision=revision, weights=weights, clock=clock), clock
        )

    def _wait_here(self, steps: Steps[Served], clock: Clock) -> Served:
        """Wait in this thread, which then cannot be asked to wait for itself: by a signal handler, say."""
        with self._owner.waiting.here():
            return wait_for(steps, clock)

    async def aload(
        self,
        source: str | os.PathLike[str],
        *,
        dtype: str | None = None,
        revision: str | None = None,
        weights: str | None = None,
        timeout: float | None = WAIT_SECONDS,  # noqa: ASYNC109  as ``load`` has it
    ) -> Served:
        """See ``load``. The event loop goes on meanwhile; a task that is cancelled waits no longer."""
        clock = Clock(timeout)
        return await await_for(
            self.arriving(source, dtype=dtype, revision=revision, weights=weights, clock=clock), clock
        )

    def arriving(
        self,
        source: str | os.PathLike[str],
        *,
        dtype: str | None = None,
        revision: str | None = None,
        weights: str | None = None,
        clock: Clock,
    ) -> Steps[Served]:
        """What ``load`` waits for, in steps, for those who wait in their own way."""
        self._check_usable()  # now, and not when the first step is taken: whoever waits then must not be asked to
        return self._arriving(_key(source, dtype, revision, weights), source, clock)

    def _arriving(self, key: LoadKey, source: str | os.PathLike[str], clock: Clock) -> Steps[Served]:
        patient = not clock.only_room
        while True:
            self._check_alive()
            known = self._known.get(self._loaded.get(key))  # type: ignore[arg-type]
            if known is not None and known.entry.state is State.RESIDENT:
                return known.served
            bring = partial(self._load, key, source, None if known is None else known.served)
            with self._loads.join(key, bring, patient=patient) as (load, begun_here):
                clock.parts.now(f"loading {key[0]!r}", load.parts)
                clock.advice = partial(self._advice, key[0], load, time.monotonic())
                yield load.done
                error = load.done.exception()
            clock.parts.now("going on")
            clock.advice = lambda: ADVICE
            if error is None:
                return load.done.result()
            if isinstance(error, StoppedError):
                continue  # others had left just then
            if isinstance(error, Exception):
                raise again(error)
            if begun_here:
                raise error  # of whoever interrupts the loading itself. That concerns nobody else: they try again

    def serve(self, model: Model) -> Served:
        """A model that is loaded already. Whoever loaded it closes it, after ``unload``; it is never evicted.

        Raises:
            DeviceMemoryError: it is more than may be in memory, also when everything idle has gone.
        """
        self._check_usable()
        if not isinstance(model, Model):
            raise InputError(f"expected a model, from load(), found {type(model).__name__}.")
        known = self._served(model)
        return self._owner.call(lambda: self._serve(model)) if known is None else known

    def unload(self, served: Served) -> None:
        """Forget a model: its conversations, its programs and, if the engine has loaded it, its weights, at once.

        Raises:
            InputError: requests for it are running or waiting, or somebody holds it.
        """
        known = self._known_of(served)

        def forget() -> None:
            scheduler, keeper = self._owner.scheduler, self._owner.keeper
            waiting = any(r.model is served for r in [*scheduler.running, *scheduler.waiting])
            if waiting or known.entry.holds or known.entry.state is State.LOADING:
                raise InputError(f"{served!r} is in use. Let its requests end, or cancel them, before it is unloaded.")
            self._forget_runner(known)
            self._known.pop(served, None)
            for key in [key for key, loaded in list(self._loaded.items()) if loaded is served]:
                self._loaded.pop(key, None)
            if (runner := self._owner.runners.pop(served, None)) is not None:
                runner.close()
            keeper.leave(known)
            if known.files is not None:
                served.model.close()
                let_go()
            self._owner.count_kv()

        self._owner.call(forget)

    def evict(self, served: Served) -> None:
        """Have a model leave memory as soon as nobody uses it. It comes back when somebody asks for it.

        Raises:
            InputError: the engine has not loaded it, and cannot load it again.
        """
        known = self._known_of(served)
        if known.files is None:
            raise InputError(f"{served!r} was loaded by somebody else, who can close it after unload().")
        self._owner.call(lambda: setattr(known.entry, "leaving", known.entry.state is not State.ABSENT))

    def pin(self, served: Served, *, pinned: bool = True) -> None:
        """Keep a model in memory, whatever happens, from now on; or, with ``pinned=False``, no longer."""
        entry = self._known_of(served).entry
        self._owner.call(lambda: setattr(entry, "pinned", bool(pinned)))
        if pinned:
            self._bring(served, until_when(WAIT_SECONDS))

    def keep_alive(self, served: Served, seconds: float | None) -> None:
        """How long a model stays in memory when nobody uses it; None: until the memory is needed for another one."""
        checked = None if seconds is None else checked_seconds("keep_alive", seconds)
        self._known_of(served).entry.keep_alive = checked
        self._post(lambda: None)  # which has it look at the time

    @contextmanager
    def hold(self, served: Served, *, timeout: float | None = WAIT_SECONDS) -> Iterator[Served]:
        """Have a model in memory for as long as a ``with`` block lasts: it is not evicted meanwhile.

            with engine().hold(served): ...

        Raises:
            DeadlineError: others used the memory all the time. DeviceMemoryError: it does not fit at all.
        """
        known, until, began = self._known_of(served), until_when(timeout), time.monotonic()
        hold = _Hold(known.entry)
        while not hold.is_taken:
            try:
                self._owner.call(hold.take, left(until))
            except TimeoutError:
                self._post(hold.give_up)  # it may have been taken just now, or will be
                raise self._too_late(repr(served), began) from None
            if not hold.is_taken:
                self._bring(served, until)
        try:
            yield served
        finally:
            with suppress(ClosedError):
                self._owner.call(lambda: _let_go(known, time.monotonic()))

    def status(
        self,
        source: str | os.PathLike[str],
        *,
        dtype: str | None = None,
        revision: str | None = None,
        weights: str | None = None,
    ) -> ModelStatus | None:
        """What ``models()`` says of one that was loaded with these arguments; None if none was. Nothing is loaded."""
        ancestry.refuse_forked()
        known = self._known.get(self._loaded.get(_key(source, dtype, revision, weights)))  # type: ignore[arg-type]
        return None if known is None else status_of(known.entry, time.monotonic())

    def models(self) -> tuple[ModelStatus, ...]:
        """Every model that was loaded or served: whether it is in memory, what it takes, who uses it."""
        ancestry.refuse_forked()
        return self._owner.keeper.statuses()

    def _advice(self, source: str, load: Load[Served], began: float) -> str:
        """What is said to those who have no more time for a load."""
        return str(self._too_late(f"the model {source!r}", began)) if load.parts.last == WAITING else ADVICE

    def _post(self, function: Callable[[], None]) -> None:
        """Have the owner thread run this some time, if the engine is not closed before."""
        with suppress(ClosedError, TimeoutError):
            self._owner.call(function, 0.0)

    def _load(self, key: LoadKey, source: str | os.PathLike[str], known: Served | None, load: Load[Served]) -> Served:
        """Load a model for everybody who waits for that. Runs in a thread of its own."""
        if known is not None:
            return self._bring_back(known, load)
        with collected_later(), self._owner.loading.here():
            served = self._loaded[key] = self._load_first(source, key, load)
        return served


def _key(source: object, dtype: str | None, revision: str | None, weights: str | None) -> LoadKey:
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"expected a folder or a model's id on the Hugging Face Hub, found {source!r}.")
    if (own := embedded_folder(source)) is not None:
        source = own
    folder = os.path.expanduser(source)  # noqa: PTH111  which never raises
    place = os.path.abspath(folder) if os.path.exists(folder) else str(source)  # noqa: PTH100, PTH110
    return place, dtype, revision, weights


class _Hold:
    """A lease of a model, as the owner thread gives it."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self.is_taken = False

    def take(self) -> None:
        """Take one lease more of the model, if it is in memory."""
        self.is_taken = self._entry.state is State.RESIDENT
        self._entry.holds += self.is_taken

    def give_up(self) -> None:
        """Give back the lease, as whoever wanted it is gone."""
        self._entry.holds -= self.is_taken


def _let_go(known: Known, now: float) -> None:
    """Give back one lease of a model, which was used until now."""
    known.entry.holds -= 1
    known.entry.last_used, known.entry.guarded_until = now, 0.0
