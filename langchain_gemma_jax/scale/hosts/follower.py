"""A follower's end of its line: a loop that does on its devices what the leader does on its own. It decides nothing."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.engine.api.model_estimate import shape_of
from langchain_gemma_jax.engine.base.events import Events
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.executables.libraries import Libraries
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.executables.signatures import Signatures
from langchain_gemma_jax.errors import GemmaJaxError, HostLostError
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.open_model import open_source
from langchain_gemma_jax.models.loading.opened import LoadPlan
from langchain_gemma_jax.models.loading.plan_model import Devices, plan_model
from langchain_gemma_jax.models.loading.read import read
from langchain_gemma_jax.scale.hosts.line import Line
from langchain_gemma_jax.scale.hosts.names import Name, each
from langchain_gemma_jax.scale.hosts.shared_programs import HostMessage, programs_name
from langchain_gemma_jax.wire.error_forms import error_out


@dataclass(frozen=True)
class _Programs:
    library: Library
    signatures: Signatures


class Follower:
    """Follows the leader at the other end of a line, in the thread that calls ``follow``."""

    def __init__(self, line: Line) -> None:
        self.devices: tuple[jax.Device, ...] = ()  # of the whole group, once it is together
        self._line = line
        self._inbox: SimpleQueue[tuple[HostMessage, memoryview]] = SimpleQueue()
        self._results: SimpleQueue[jax.Array] = SimpleQueue()
        self._arrays: dict[Name, jax.Array] = {}
        self._dropped: set[int] = set()  # loads that the leader gave up
        self._libraries = Libraries(Events())
        self._programs: dict[str, _Programs] = {}
        self._early: dict[str, list[ProgramKey]] = {}  # programs that were asked for before their model was loaded

    def begin(self) -> None:
        """Start to listen to the leader and to check results. If it is lost or a program fails, this process exits."""
        for work in (self._listen, self._check):
            threading.Thread(target=work, name="gemma-jax-hosts", daemon=True).start()

    def follow(self) -> None:
        """Carry out the leader's orders until the order to end."""
        try:
            while True:
                message, data = self._inbox.get()
                for name in each(message.get("gone", ())):
                    self._arrays.pop(name, None)
                if message["do"] == "end":
                    return
                self._do(message, data)
        except Exception as error:  # noqa: BLE001  after any error it is out of step with the leader
            self._fail(error)

    def _do(self, message: HostMessage, data: memoryview) -> None:
        if message["do"] == "load":
            threading.Thread(target=self._load, args=(message,), name="gemma-jax-load", daemon=True).start()
        elif message["do"] == "loaded":
            self._keep(message["load"], message["arrays"])
        elif message["do"] == "drop":
            self._dropped.add(message["load"])
            for name in [name for name in self._arrays if name[0] == message["load"]]:
                self._arrays.pop(name).delete()
        elif message["do"] in {"make", "ready"}:
            self._make(message)
        elif (programs := self._programs.get(message.get("programs", ""))) is not None:
            # else no device of this host has a part of the model
            if message["do"] == "copy":
                arrays = _arrays(message["arrays"], data)
                self._keep(message["batch"], programs.library.programs.placement.put(arrays))
            elif message["do"] == "run":
                self._run(programs, tuple(message["key"]), message)

    def _make(self, message: HostMessage) -> None:
        """Make a program. "make": in the background, as it is needed soon. "ready": now, and answer the leader then."""
        name, key = message["programs"], tuple(message["key"])
        programs = self._programs.get(name)
        if message["do"] == "ready":
            if programs is not None:
                programs.library.make(key)
            self._line.send({"do": "ready", "answers": message["number"]})
        elif programs is not None:
            programs.library.soon([key])
        else:
            self._early.setdefault(name, []).append(key)

    def _run(self, programs: _Programs, key: ProgramKey, message: HostMessage) -> None:
        tree = jax.tree.structure(programs.signatures.arguments(key))
        given = jax.tree.unflatten(tree, [self._arrays[name] for name in each(message["given"])])
        with jax.transfer_guard("disallow"):
            found = programs.library.of(key)(*given)
        self._keep(message["batch"], leaves := jax.tree.leaves(found))
        self._results.put(leaves[0])

    def _load(self, message: HostMessage) -> None:
        """Load a model. Runs in a thread of its own, as other models go on meanwhile."""
        number, how = message["number"], message["how"]
        answer: HostMessage = {"do": "loaded", "answers": number, "programs": None}
        try:
            if any(device.process_index == jax.process_index() for device in self.devices[: how["devices"]]):
                settings = Settings(max_context=message["max_context"], loop_steps=message["loop_steps"])

                asked = HowToLoad.of(how)
                with open_source(message["source"], asked, progress=False) as opened:
                    plan = plan_model(opened, asked, Devices(among=self.devices))
                    answer["programs"] = self._expect(plan, settings)
                    model = read(opened, plan, progress=False)
                self._inbox.put(({"do": "loaded", "load": number, "arrays": jax.tree.leaves(model.params)}, _NOTHING))
        except GemmaJaxError as error:
            answer["error"] = error_out(error)
        except Exception as error:  # noqa: BLE001  the leader raises it in the calls that wait for the model
            answer["error"] = error_out(HostLostError(f"A host of the group cannot load it: {error!r:.500}"))
        try:
            self._line.send(answer)
        except HostLostError as error:
            self._fail(error)

    def _expect(self, plan: LoadPlan, settings: Settings) -> str:
        """Set up a model's programs, begin with those that were asked for early, and return the name of them all."""
        shape = shape_of(settings, plan)
        name = programs_name(shape, plan.placement)
        if name not in self._programs:
            library = self._libraries.of(shape, plan.placement, plan.name)
            self._programs[name] = _Programs(library, Signatures(shape, plan.placement))
            library.soon(self._early.pop(name, ()))
        return name

    def _keep(self, batch: int, arrays: Sequence[jax.Array]) -> None:
        if batch in self._dropped:
            self._dropped.discard(batch)
            return
        self._arrays.update(((batch, place), array) for place, array in enumerate(arrays))

    def _listen(self) -> None:
        """Receive the leader's orders, while the main thread carries out earlier ones."""
        try:
            while True:
                message, data = self._line.receive()
                if message["do"] != "beat":
                    self._inbox.put((message, data))
                if message["do"] == "end":
                    return
        except HostLostError as error:
            self._fail(error)

    def _check(self) -> None:
        """Wait for each program's result, to see it fail: no other thread here does."""
        while True:
            result = self._results.get()
            try:
                result.block_until_ready()
            except RuntimeError as error:  # one of JAX's errors; or the result was donated to the next program
                if not result.is_deleted():
                    self._fail(error)
            del result

    def _fail(self, error: Exception) -> NoReturn:
        """Exit at once, after a word to the leader: a thread may be in a program that will never end."""
        if not isinstance(error, HostLostError):
            with suppress(HostLostError):
                self._line.send({"do": "failed", "why": f"{type(error).__name__}: {error}"[:500]})
        sys.stderr.write(f"gemma-jax: this host ends: {type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(1)


_NOTHING = memoryview(b"")


def _arrays(layouts: Sequence[Any], data: memoryview) -> list[Any]:
    """Return the arrays that were sent: ``layouts`` has their types and shapes, ``data`` their bytes in this order."""
    found, at = [], 0
    for dtype, shape in layouts:
        array = np.frombuffer(data, jnp.dtype(dtype), math.prod(shape), at).reshape(shape).copy()  # a copy is aligned
        at += array.nbytes
        found.append(array)
    return found
