"""The models that an engine serves: loaded, kept, evicted, and loaded again when somebody asks.

A ``Served`` stays what it is while its weights come and go. What is kept of an evicted model is what costs
nothing on the device: its tokenizer, its grammars, its conversations in host memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.engine.again import again
from langchain_gemma_jax.engine.arrivals import Arrivals, LoadKey, left, until_when
from langchain_gemma_jax.engine.collecting import collected_later, let_go
from langchain_gemma_jax.engine.known import Known
from langchain_gemma_jax.engine.pool.entry import Entry, State
from langchain_gemma_jax.engine.pool.status import ModelStatus, status_of
from langchain_gemma_jax.engine.served import Served
from langchain_gemma_jax.engine.settings import checked_seconds
from langchain_gemma_jax.errors import ClosedError, InputError
from langchain_gemma_jax.models.embedded import embedded_folder
from langchain_gemma_jax.models.model import Model

WAIT_SECONDS = 300.0  # that a caller waits for room for a model, unless it says otherwise


class Residents(Arrivals):
    """The part of an engine that callers load and unload models with."""

    def load(
        self,
        source: str | os.PathLike[str],
        *,
        dtype: str | None = None,
        revision: str | None = None,
        timeout: float | None = WAIT_SECONDS,
    ) -> Served:
        """A model by folder or Hub id, loaded once however many threads ask; the arguments are ``load_model``'s.

        It is in memory when this returns, and stays until the memory is needed for another one. A model that was
        evicted is loaded again. Where others use the memory, this waits, up to ``timeout`` seconds.

        If loading fails, everybody who waits for it gets the error, and the next call tries again.

        Raises:
            DeviceMemoryError: it does not fit beside what never goes. DeadlineError: nor did others go in time.
        """
        key = _key(source, dtype, revision)
        until, began = until_when(timeout), time.monotonic()
        while True:
            self._check_usable()
            mine: Future[Served] = Future()
            load = self._loads.setdefault(key, mine)
            if load is mine:
                with collected_later(), self._owner.loading.here():
                    return self._load(mine, key, source, until)
            try:
                with self._owner.waiting.here():
                    error = load.exception(left(until))
            except TimeoutError:
                raise self._too_late(f"the model {key[0]!r}", began) from None
            if error is None:
                served = load.result()
                self._bring(served, until)
                return served
            if isinstance(error, Exception):
                raise again(error)
            # Whoever was loading was interrupted, by Ctrl-C perhaps. That concerns nobody else: try it here.

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
            for key, load in list(self._loads.items()):
                if load.done() and load.exception() is None and load.result() is served:
                    self._loads.pop(key, None)
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
        entry = self._known_of(served).entry
        self._owner.call(lambda: setattr(entry, "keep_alive", checked))

    @contextmanager
    def hold(self, served: Served, *, timeout: float | None = WAIT_SECONDS) -> Iterator[Served]:
        """Have a model in memory for as long as a ``with`` block lasts: it is not evicted meanwhile.

            with engine().hold(served): ...

        Raises:
            DeadlineError: others used the memory all the time. DeviceMemoryError: it does not fit at all.
        """
        known, until = self._known_of(served), until_when(timeout)
        while not self._owner.call(lambda: _take_hold(known.entry)):
            self._bring(served, until)
        try:
            yield served
        finally:
            with suppress(ClosedError):
                self._owner.call(lambda: _let_go(known, time.monotonic()))

    def status(
        self, source: str | os.PathLike[str], *, dtype: str | None = None, revision: str | None = None
    ) -> ModelStatus | None:
        """What ``models()`` says of one that was loaded with these arguments; None if none was. Nothing is loaded."""
        ancestry.refuse_forked()
        load = self._loads.get(_key(source, dtype, revision))
        done = load is not None and load.done() and load.exception() is None
        known = self._known.get(load.result()) if load is not None and done else None
        return None if known is None else status_of(known.entry, time.monotonic())

    def models(self) -> tuple[ModelStatus, ...]:
        """Every model that was loaded or served: whether it is in memory, what it takes, who uses it."""
        ancestry.refuse_forked()
        return self._owner.keeper.statuses()

    def _load(self, mine: Future[Served], key: LoadKey, source: str | os.PathLike[str], until: float | None) -> Served:
        """Load it, for everybody who waits for that."""
        try:
            served = self._load_first(source, key, until)
        except BaseException as error:
            if self._loads.get(key) is mine:
                self._loads.pop(key, None)
            # One of their own: this one's traceback goes on growing in this thread.
            mine.set_exception(again(error) if isinstance(error, Exception) else error)
            raise
        mine.set_result(served)
        return served


def _key(source: object, dtype: str | None, revision: str | None) -> LoadKey:
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"expected a folder or a model's id on the Hugging Face Hub, found {source!r}.")
    if (own := embedded_folder(source)) is not None:
        source = own
    folder = os.path.expanduser(source)  # noqa: PTH111  which never raises
    place = os.path.abspath(folder) if os.path.exists(folder) else str(source)  # noqa: PTH100, PTH110
    return place, dtype, revision


def _take_hold(entry: Entry) -> bool:
    """One lease more, if it is in memory."""
    there = entry.state is State.RESIDENT
    entry.holds += there
    return there


def _let_go(known: Known, now: float) -> None:
    """One lease less: it was used until now."""
    known.entry.holds -= 1
    known.entry.last_used, known.entry.guarded_until = now, 0.0
