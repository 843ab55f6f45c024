"""The leader's end of the lines: its engine's dispatches, copies and loads, sent to all followers in one order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.errors import HostLostError, InstallationError
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.opened import LoadPlan
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.scale.hosts.line import BEAT, SILENCE, Line
from langchain_gemma_jax.scale.hosts.names import ArrayNames
from langchain_gemma_jax.scale.hosts.shared_programs import HostMessage, programs_name
from langchain_gemma_jax.wire.error_forms import error_in

_MOMENT = 1.0  # seconds to wait for a broken line to be noticed, after a program of the group failed


class Leader:
    """The followers of this process. ``others`` of its engine: see ``engine.device.other_hosts``."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.devices: tuple[jax.Device, ...] = ()  # of the whole group, once it is together
        self.names, self.lost = ArrayNames(), cast("HostLostError | None", None)
        self._lines, self._when_lost = list(lines), list[Callable[[HostLostError], None]]()
        self._waiting: dict[int, _Answers] = {}
        self._asked: WeakKeyDictionary[Model, HostMessage] = WeakKeyDictionary()
        self._lock = threading.Lock()  # so that each follower gets all orders in the same order
        self._losing = threading.Lock()
        self._ended, self._broken = threading.Event(), threading.Event()

    def begin(self) -> None:
        """Start the threads that listen to the followers and look for arrays that are gone."""
        for number, line in enumerate(self._lines, 1):
            threading.Thread(target=self._listen, args=(number, line), name="gemma-jax-hosts", daemon=True).start()
        threading.Thread(target=self._look, name="gemma-jax-hosts", daemon=True).start()

    def is_together(self) -> None:
        """Note that all hosts have started JAX: from now on, a few seconds of silence mean that one is lost."""
        for line in self._lines:
            line.patience = SILENCE

    def when_lost(self, call: Callable[[HostLostError], None]) -> None:
        """Call a function when a follower is lost, in the thread that notices it; now, if one is lost already."""
        with self._losing:
            self._when_lost.append(call)
            lost = self.lost
        if lost is not None:
            call(lost)

    def end(self) -> None:
        """End the followers, as all work is done."""
        self._ended.set()
        self.tell({"do": "end"})

    def tell(self, message: HostMessage, data: Sequence[bytes | memoryview] = ()) -> None:
        """Send an order, and bytes with it, to all followers.

        Raises:
            HostLostError: one of them is lost.
        """
        with self._lock:
            if self.lost is not None:
                raise self.lost
            if gone := self.names.gone():
                message = {**message, "gone": gone}
            try:
                for line in self._lines:
                    line.send(message, data)
            except HostLostError as error:
                lost = error
            else:
                return
        raise self.lose(lost)

    def lose(self, error: HostLostError) -> HostLostError:
        """Note that the group has ended, and return the first error that ended it."""
        with self._losing:
            if self.lost is not None:
                return self.lost
            self.lost, calls = error, self._when_lost[:]
        self._broken.set()
        for answers in list(self._waiting.values()):
            answers.all_there.set()
        if not self._ended.is_set():
            for call in calls:
                call(error)
        return error

    def failed(self, error: Exception) -> HostLostError:
        """End the group, after a program of all hosts failed, and return the error that ended it."""
        self._broken.wait(_MOMENT)  # a lost host is the likely reason, and the better error
        text = f"{type(error).__name__}: {error}"[:500]
        advice = "If it keeps failing, have each host compile its programs again: gemma-jax cache clear."
        why = f"What the hosts of a group do together failed, and they go on no more: {text}"
        return self.lose(HostLostError(f"{why.rstrip('.')}. {advice}"))

    # Called by the engine.

    def programs(self, shape: Shape, where: Placement) -> HostPrograms:
        """Return the followers' programs of a shape in a place."""
        return HostPrograms(self, programs_name(shape, where))

    def making(self, shape: Shape, where: Placement) -> Callable[[ProgramKey], None]:
        """Return a function to call with each program that is made here, so that the followers make it too."""
        name = programs_name(shape, where)
        return lambda key: self.tell({"do": "make", "programs": name, "key": list(key)})

    def load(self, plan: LoadPlan, shape: Shape, source: str, how: Mapping[str, Any]) -> _Load:
        """Have the followers load the model that is being loaded here."""
        folder = Path(source).expanduser()
        asked = {
            "source": str(folder.absolute()) if folder.exists() else source,
            "how": {**how, "devices": len(plan.placement.devices)},
            "max_context": shape.max_context,
            "loop_steps": shape.loop_steps,
        }
        return self._load(plan, shape, asked)

    def load_again(self, plan: LoadPlan, shape: Shape, model: Model) -> _Load:
        """Have the followers load a model again that they had loaded before."""
        return self._load(plan, shape, self._asked[model])

    def _load(self, plan: LoadPlan, shape: Shape, asked: HostMessage) -> _Load:
        self.names.look()  # so that the followers also delete what was evicted to make room
        answers = self.ask({"do": "load", **asked})
        return _Load(self, asked, programs_name(shape, plan.placement), answers)

    def over(self, load: _Load, model: Model | None) -> None:
        """Forget a load that has ended. ``model``: the model that came of it; None if it failed."""
        self._waiting.pop(load.number, None)
        if model is not None:
            self._asked[model] = load.asked

    def have_ready(self, programs: str, key: ProgramKey) -> None:
        """Wait until all followers have made a program.

        A process that begins it before the others waits for them inside of the program, and fails after some seconds.

        Raises:
            HostLostError: one of them is lost.
        """
        answers = self.ask({"do": "ready", "programs": programs, "key": list(key)})
        answers.all_there.wait()
        self._waiting.pop(answers.number, None)
        if self.lost is not None:
            raise self.lost

    def ask(self, message: HostMessage) -> _Answers:
        """Send all followers an order that each of them answers.

        Raises:
            HostLostError: one of them is lost.
        """
        answers = _Answers(self.names.batch(), len(self._lines))
        self._waiting[answers.number] = answers
        self.tell({**message, "number": answers.number})
        return answers

    # Threads that listen to the followers.

    def _listen(self, number: int, line: Line) -> None:
        try:
            while True:
                message, _ = line.receive()
                if (answers := self._waiting.get(message.get("answers", 0))) is not None:
                    answers.add(number, message)
                elif message["do"] == "failed":
                    self.lose(_of_host(number, f"It ended with an error: {message['why']}"))
        except HostLostError as error:
            self.lose(_of_host(number, str(error)))

    def _look(self) -> None:
        while not self._ended.wait(BEAT) and self.lost is None:
            self.names.look()
            if self.names.some_gone:
                with suppress(HostLostError):
                    self.tell({"do": "nothing"})


class HostPrograms:
    """The followers' programs of one shape in one place."""

    def __init__(self, leader: Leader, name: str) -> None:
        self._leader, self._name = leader, name
        self._everywhere: set[ProgramKey] = set()  # programs that all followers have

    def copied(self, arrays: Sequence[npt.NDArray[np.generic]], there: Sequence[jax.Array]) -> None:
        """Have the followers copy arrays to their devices. ``there``: the copies that were made here."""
        batch = self._leader.names.batch()
        shapes = [[array.dtype.name, array.shape] for array in arrays]
        data = [np.ascontiguousarray(array).tobytes() for array in arrays]
        self._leader.tell({"do": "copy", "programs": self._name, "batch": batch, "arrays": shapes}, data)
        self._leader.names.give(batch, there)

    def mirrored(self, key: ProgramKey, program: Callable[..., Any]) -> Callable[..., Any]:
        """Return the program as a function that has the followers dispatch it too, before it is dispatched here."""
        leader = self._leader

        def run(*given: Any) -> Any:
            if key not in self._everywhere:
                leader.have_ready(self._name, key)
                self._everywhere.add(key)
            batch, names = leader.names.batch(), leader.names.of(jax.tree.leaves(given))
            leader.tell({"do": "run", "programs": self._name, "key": list(key), "given": names, "batch": batch})
            try:
                found = program(*given)
            except Exception as error:  # after any error the followers run a program that this process does not
                raise leader.failed(error) from error
            leader.names.give(batch, jax.tree.leaves(found))
            return found

        return run

    def failed(self, error: Exception) -> HostLostError:
        """Return the error for calls that waited for a program of the group, which failed."""
        return self._leader.failed(error)


def _of_host(number: int, why: str) -> HostLostError:
    return HostLostError(f"Host {number} of the group is lost, and the group is at its end with it. {why}")


class _Answers:
    """The answers of all followers to one order."""

    def __init__(self, number: int, followers: int) -> None:
        self.number, self.all_there, self._followers = number, threading.Event(), followers
        self._received: dict[int, HostMessage] = {}

    def add(self, host: int, message: HostMessage) -> None:
        """Add the answer of one follower."""
        self._received[host] = message
        if len(self._received) == self._followers:
            self.all_there.set()

    def by_host(self) -> list[tuple[int, HostMessage]]:
        """Return the answers with the numbers of their hosts, in this order."""
        return sorted(self._received.items(), key=lambda each: each[0])


class _Load:
    """A model that the followers load while the leader does."""

    def __init__(self, leader: Leader, asked: HostMessage, programs: str, answers: _Answers) -> None:
        self.asked, self.number = asked, answers.number
        self._leader, self._programs, self._answers = leader, programs, answers

    def finish(self, model: Model) -> None:
        """Wait until all followers have loaded the model.

        Raises:
            GemmaJaxError: one of them cannot load it, or is lost.
        """
        self._answers.all_there.wait()
        if self._leader.lost is not None:
            raise self._leader.lost
        for number, message in self._answers.by_host():
            if "error" in message:
                raise error_in(message["error"])
            if message["programs"] not in {None, self._programs}:
                raise InstallationError(
                    f"Host {number} of the group makes other programs of {model.name!r} than this one: they have other "
                    "versions of this package or of JAX, or other files of the model. Give all of them the same."
                )
        self._leader.names.give(self.number, jax.tree.leaves(model.params))
        self._leader.over(self, model)

    def give_up(self) -> None:
        """Have the followers drop the model, as the load failed here."""
        self._leader.over(self, None)
        if self._leader.lost is None:
            self._leader.tell({"do": "drop", "load": self.number})
