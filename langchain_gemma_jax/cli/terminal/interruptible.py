"""Work that Ctrl-C interrupts between two of its results, and nowhere else."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Generic, NoReturn, TypeVar

Result = TypeVar("Result")


class Interruptible(Generic[Result]):
    """Results that are made in a thread of their own. Iteration waits for them, and Ctrl-C can interrupt the wait.

    Python raises ``KeyboardInterrupt`` at any line of the main thread. In the middle of an import that leaves half of a
    module, and all later uses of the module fail. So the main thread only waits.

        for piece in Interruptible(lambda: model.stream(messages)):
            ...
    """

    def __init__(self, make: Callable[[], Iterable[Result]]) -> None:
        self._make = make
        self._found: queue.SimpleQueue[Callable[[], Result] | None] = queue.SimpleQueue()
        self._over = threading.Event()

    def __iter__(self) -> Iterator[Result]:
        threading.Thread(target=self._work, name="gemma-jax-answer", daemon=True).start()
        try:
            while (found := self._found.get()) is not None:
                yield found()
        finally:
            self._over.set()

    def _work(self) -> None:
        results: Iterable[Result] = ()
        try:
            results = self._make()
            for each in results:
                if self._over.is_set():  # the iteration has ended
                    break
                self._found.put(partial(_same, each))
        except BaseException as error:  # noqa: BLE001  the iteration raises it
            self._found.put(_raising(error))
        finally:
            if isinstance(results, Generator):
                results.close()
            self._found.put(None)


def _same(result: Result) -> Result:
    return result


def _raising(error: BaseException) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise error

    return fail
