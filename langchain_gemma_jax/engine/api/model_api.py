"""The models that an engine serves: loaded, kept, evicted, and loaded again when somebody asks.

A ``Served`` stays what it is while its weights come and go. What is kept of an evicted model is what costs
nothing on the device: its tokenizer, its grammars, its conversations in host memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.engine.api.adapters import ReadAdapters
from langchain_gemma_jax.engine.api.loads_under_way import Load
from langchain_gemma_jax.engine.api.model_loading import WAIT_SECONDS, WAITING, ModelLoader, left, no_room, until_when
from langchain_gemma_jax.engine.base.checks import checked_prompt, checked_token_count, no_embedder
from langchain_gemma_jax.engine.base.guards import Asking
from langchain_gemma_jax.engine.base.ladders import TextLadder
from langchain_gemma_jax.engine.base.settings import checked_seconds
from langchain_gemma_jax.engine.executables.warmup import Warmup, first_answer, needed, needed_for_texts, warm
from langchain_gemma_jax.engine.host.error_copies import again
from langchain_gemma_jax.engine.host.gc_pause import collected_later, free_deleted_arrays
from langchain_gemma_jax.engine.requests.clock import ADVICE, Clock, Steps
from langchain_gemma_jax.engine.residency.known_models import KnownModel
from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry, State
from langchain_gemma_jax.engine.residency.model_status import ModelStatus, status_of
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.engine.steps.text_vectors import text_vectors_of
from langchain_gemma_jax.errors import ClosedError, InputError
from langchain_gemma_jax.models.configuration.embedded import embedded_folder
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.mesh.counts import AUTO, replica_count
from langchain_gemma_jax.stopping import Stop

LoadKey: TypeAlias = tuple[str, HowToLoad]
"""A model's place, and how it is loaded."""


class ModelApi:
    """The engine's methods for its models. ``Engine`` says what each is for."""

    def __init__(self, loader: ModelLoader) -> None:
        self._loader, self._owner, self._models = loader, loader.owner, loader.owner.models
        self._adapters = ReadAdapters(self.known)
        self.adapter = self._adapters.of
        self._loaded: dict[LoadKey, Served] = {}  # since when they may have been evicted

    def known(self, served: Served) -> KnownModel:
        """Return what is known of a model that somebody asks for.

        Raises:
            InputError: it is not served here. ClosedError, ReentrantCallError, ForkedError: see ``check_usable``.
        """
        self._owner.check_usable()
        return self._models.of(served)

    def arriving(
        self, source: str | os.PathLike[str], how: HowToLoad, clock: Clock, asked_by: Asking | None = None
    ) -> Steps[Served]:
        self._owner.check_usable()  # now, and not when the first step is taken: whoever waits then must not be asked to
        return self._arriving(self._key(source, how), source, how.token, clock, asked_by)

    def serve(self, model: Model) -> Served:
        self._owner.check_usable()
        if not isinstance(model, Model):
            raise InputError(f"expected a model, from load(), found {type(model).__name__}.")
        known = self._models.served_as(model)
        return self._owner.call(lambda: self._loader.serve(model)) if known is None else known

    def unload(self, served: Served) -> None:
        all_of = self._all_of(served)

        def forget() -> None:
            for known in all_of:
                self._check_unused(known)
            self._models.replicas.pop(served, None)
            for known in all_of:
                self._forget(known)

        self._owner.call(forget)

    def evict(self, served: Served) -> None:
        all_of = self._all_of(served)
        if all_of[0].files is None:
            raise InputError(f"{served!r} was loaded by your program, which can close it after unload().")
        for known in all_of:
            self._owner.call(partial(_leave, known.entry))

    def pin(self, served: Served, *, pinned: bool = True) -> None:
        for known in self._all_of(served):
            self._owner.call(partial(setattr, known.entry, "pinned", bool(pinned)))
            if pinned:
                self._loader.bring(known.served, until_when(WAIT_SECONDS))

    def keep_alive(self, served: Served, seconds: float | None) -> None:
        checked = None if seconds is None else checked_seconds("keep_alive", seconds)
        for known in self._all_of(served):
            known.entry.keep_alive = checked
        self._owner.post(_look_at_the_time)

    @contextmanager
    def hold(self, served: Served, *, timeout: float | None = WAIT_SECONDS) -> Iterator[Served]:
        until = until_when(timeout)
        with ExitStack() as held:
            for known in self._all_of(served):
                held.enter_context(self._hold_one(known.served, left(until)))
            yield served

    @contextmanager
    def _hold_one(self, served: Served, timeout: float | None) -> Iterator[Served]:
        known, until, began = self.known(served), until_when(timeout), time.monotonic()
        hold = _Hold(known.entry)
        while not hold.is_taken:
            try:
                self._owner.call(hold.take, left(until))
            except TimeoutError:
                self._owner.post(hold.give_up)  # it may have been taken just now, or will be
                raise no_room(repr(served), began, self.models()) from None
            if not hold.is_taken:
                self._loader.bring(served, until)
        try:
            yield served
        finally:
            with suppress(ClosedError):
                self._owner.call(lambda: _let_go(known, time.monotonic()))

    def embed(
        self, served: Served, texts: Sequence[Sequence[int]], clock: Clock | None = None, stop: Stop | None = None
    ) -> npt.NDArray[np.float32]:
        """Return the vectors of whole texts, which are token ids: ``[text, width]``. Waits for them.

        Raises:
            UnsupportedModelError: the model makes none. ContextLengthError: a text is too long.
            DeadlineError: the time was up. CancelledRequestError: ``stop`` was asked for.
        """
        clock = clock or Clock()
        known = self.known(served)
        shape = known.shape
        if (width := shape.architecture.embedding_width) is None:
            raise no_embedder(served.name)
        checked = [checked_prompt(text, shape.architecture.vocab_size, shape.max_context + 1) for text in texts]
        if not checked:
            return np.zeros((0, width), np.float32)
        with self.hold(served, timeout=WAIT_SECONDS if clock.left is None else clock.left):
            runner, ladder = self._models.runners[served], TextLadder.for_context(shape.max_context)
            with self._owner.waiting.here():
                return text_vectors_of(runner, ladder, checked, self._owner.call, clock, stop)

    def warmup(self, served: Served, max_context: int | None, clock: Clock, *, progress: bool | None) -> Warmup:
        if max_context is not None and checked_token_count(max_context) > served.max_context:
            raise InputError(
                f"max_context: {served.name} can have up to {served.max_context} tokens here; found {max_context}."
            )
        warmed = [self._warm_one(known, max_context, clock, progress=progress) for known in self._all_of(served)]
        return warmed[0]

    def _warm_one(self, known: KnownModel, max_context: int | None, clock: Clock, *, progress: bool | None) -> Warmup:
        """Compile what one replica needs."""
        served = known.served
        with self._hold_one(served, WAIT_SECONDS if clock.left is None else clock.left):
            runner = self._models.runners[served]
            limit = served.max_context if max_context is None else checked_token_count(max_context)
            if not served.model.architecture.embeds:
                keys = needed(runner.device.bound, runner.ladders, limit)
                first = first_answer(runner.ladders)
            else:
                keys = needed_for_texts(runner.device.bound, limit)
                first = keys[:1]
            for key in keys:
                runner.device.expect(key)
            with self._owner.waiting.here():
                found = warm(
                    runner.library, self._owner.background, keys, first, clock, name=served.name, progress=progress
                )
            runner.device.warmed = True
            return found

    def status(self, source: str | os.PathLike[str], how: HowToLoad) -> ModelStatus | None:
        ancestry.refuse_forked()
        known = self._known_by(self._key(source, how))
        return None if known is None else status_of(known.entry, time.monotonic())

    def models(self) -> tuple[ModelStatus, ...]:
        ancestry.refuse_forked()
        return self._owner.evictor.statuses()

    def forget(self) -> None:
        """The engine was closed: nothing is loaded by any name."""
        self._loaded.clear()
        self._adapters.forget()

    def _key(self, source: object, how: HowToLoad) -> LoadKey:
        return _place(source), self._loader.placed(how)

    def _all_of(self, served: Served) -> tuple[KnownModel, ...]:
        """Return what is known of a model that somebody asks for, and of its replicas."""
        self._owner.check_usable()
        return self._models.all_of(served)

    def _known_by(self, key: LoadKey) -> KnownModel | None:
        """Return what is known of the model that was loaded by these arguments; None if none was."""
        served = self._loaded.get(key)
        return None if served is None else self._models.known.get(served)

    def _arriving(
        self,
        key: LoadKey,
        source: str | os.PathLike[str],
        token: str | None,
        clock: Clock,
        asked_by: Asking | None,
    ) -> Steps[Served]:
        patient = not clock.only_room
        while True:
            self._owner.check_alive()
            known = self._known_by(key)
            if known is not None and known.entry.state is State.RESIDENT:
                return known.served
            bring = partial(self._load, key, source, token, None if known is None else known.served)
            with self._loader.loads.join(key, bring, patient=patient) as (load, begun_here):
                advice = partial(self._late, key[0], load, time.monotonic(), asked_by)
                clock.now(f"loading {key[0]!r}", load.parts, advice)
                yield load.done
                error, given_up = load.done.exception(), load.given_up  # before this one leaves, and gives it up
            clock.now("going on")
            if error is None:
                return load.done.result()
            if given_up and isinstance(error, Exception):
                continue  # the others had left before this one came. Of a closed engine, the first step says so
            if isinstance(error, Exception):
                raise again(error)
            if begun_here:
                raise error  # of whoever interrupts the loading itself. That concerns nobody else: they try again

    def _load(
        self,
        key: LoadKey,
        source: str | os.PathLike[str],
        token: str | None,
        known: Served | None,
        load: Load[Served],
    ) -> Served:
        """Load a model for everybody who waits for that. Runs in a thread of its own."""
        if known is not None:
            return self._loader.bring_back(known, load)
        how = replace(key[1], token=token)
        devices, replicas = how.devices, how.replicas
        if isinstance(replicas, int) and devices != AUTO:
            replica_count(replicas, int(devices or 1), str(source), jax.local_devices())  # now, and not behind a load
        with collected_later(), self._owner.loading.here():
            served = self._loader.load_first(source, how.alone(devices), load, None if replicas is None else 0)
            if replicas is not None:
                self._load_replicas(served, source, how, load)
            self._loaded[key] = served
        return served

    def _load_replicas(
        self, served: Served, source: str | os.PathLike[str], how: HowToLoad, load: Load[Served]
    ) -> None:
        """Load a model's other replicas, each on devices of its own. All of them come, or none stays."""
        members, devices, asked = [served], len(served.model.placement.devices), how.replicas or 1
        alone = how.alone(devices if devices > 1 else how.devices)
        try:
            for replica in range(1, replica_count(asked, devices, served.name, jax.local_devices())):
                members += [self._loader.load_first(source, alone, load, replica)]
            self._owner.call(lambda: self._models.join(tuple(members)))
        except BaseException:
            for known in map(self._models.of, members):
                self._owner.call(partial(self._forget, known))
            raise

    def _late(self, source: str, load: Load[Served], began: float, asked_by: Asking | None) -> str:
        """Somebody has no more time for a load. Returns what is said to them; the guards may have a word, too.

        Raises:
            GuardError: they do not let it pass.
        """
        if asked_by is not None:
            self._loader.late(Path(source).name if os.path.isabs(source) else source, load, asked_by)  # noqa: PTH117
        return str(no_room(f"the model {source!r}", began, self.models())) if load.parts.last == WAITING else ADVICE

    def _check_unused(self, known: KnownModel) -> None:
        served, owner = known.served, self._owner
        waiting = any(r.asked.model is served for r in [*owner.scheduler.running, *owner.scheduler.waiting])
        if waiting or known.entry.holds or known.entry.state is State.LOADING:
            raise InputError(f"{served!r} is in use. Let its requests end, or cancel them, before it is unloaded.")

    def _forget(self, known: KnownModel) -> None:
        """Forget a model that nobody uses. Runs on the owner thread."""
        served, owner = known.served, self._owner
        self._check_unused(known)
        for key in [key for key, loaded in list(self._loaded.items()) if loaded is served]:
            self._loaded.pop(key, None)
        if (runner := self._models.runners.pop(served, None)) is not None:
            runner.close()
        owner.evictor.leave(known)
        if known.files is not None:
            served.model.close()
            free_deleted_arrays()
        owner.evictor.publish()


def _place(source: object) -> str:
    """Return where a model is, spelled in one way."""
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"expected a folder or a model's id on the Hugging Face Hub, found {source!r}.")
    if (own := embedded_folder(source)) is not None:
        source = own
    folder = os.path.expanduser(source)  # noqa: PTH111  which never raises
    return os.path.abspath(folder) if os.path.exists(folder) else str(source)  # noqa: PTH100, PTH110


def _look_at_the_time() -> None:
    """Nothing: but before it waits again, the owner thread sees how long models may stay."""


class _Hold:
    """A lease of a model, as the owner thread gives it."""

    def __init__(self, entry: LedgerEntry) -> None:
        self._entry = entry
        self.is_taken = False

    def take(self) -> None:
        """Take one lease more of the model, if it is in memory."""
        self.is_taken = self._entry.state is State.RESIDENT
        self._entry.holds += self.is_taken

    def give_up(self) -> None:
        """Give back the lease, as whoever wanted it is gone."""
        self._entry.holds -= self.is_taken


def _leave(entry: LedgerEntry) -> None:
    """Have a model leave memory as soon as nobody uses it, if it is there."""
    entry.leaving = entry.state is not State.ABSENT


def _let_go(known: KnownModel, now: float) -> None:
    """Give back one lease of a model, which was used until now."""
    known.entry.holds -= 1
    known.entry.last_used, known.entry.guarded_until = now, 0.0
