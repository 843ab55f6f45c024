"""The prefixes of all models of an engine on the disk, and the threads that read and write them."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixCounts, PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_names import PrefixNames, family_name
from langchain_gemma_jax.engine.prefix_store.sealing import Digests, Sealing
from langchain_gemma_jax.engine.prefix_store.stored_prefixes import StoredPrefixes
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged

EXIT_SECONDS = 1.0  # that the end of the process waits for what is being written ...
CLOSE_SECONDS = 30.0  # ... and that of an engine, where nobody says
MOST_WAITING = 2**28  # bytes of host memory that may wait to be written


class Worker(Protocol):
    """Threads that do what is handed to them: a ``Background``."""

    def submit(self, work: Callable[[], Any]) -> Future[Any]: ...

    def close(self, timeout: float | None = None) -> bool: ...


@dataclass(eq=False)
class ModelPrefixes:
    """What the disk has of one model, as soon as that is known."""

    prefixes: StoredPrefixes | None = None
    never: bool = False  # its files were changed, so that nothing says which model it is
    first_look: Future[None] = field(default_factory=Future)  # done soon. Reading all of a model takes longer


class PrefixStore:
    """Where an engine keeps prefixes."""

    def __init__(self, folder: Path, cap: int, reader: Worker, writer: Worker, sealing: Sealing | None = None) -> None:
        self.folder = PrefixFolder(folder, cap)
        self.reader, self.writer = reader, writer
        self._sealing: Sealing = Digests() if sealing is None else sealing
        self._waiting, self._lock = 0, threading.Lock()
        atexit.register(self.close, EXIT_SECONDS)

    @property
    def counts(self) -> PrefixCounts:
        return self.folder.counts

    def of(self, files: Unchanged, programs: Callable[[], str]) -> ModelPrefixes:
        """Begin to look for one model's prefixes.

        Args:
            files: what it was read from.
            programs: gives a digest of all that its programs depend on.
        """
        found = ModelPrefixes()

        def look(*, thoroughly: bool) -> None:
            try:
                known = self.folder.digest_of(files, thoroughly=thoroughly)
                if known is not None:
                    names = PrefixNames(family_name(known, programs()), self._sealing.secret)
                    prefixes = StoredPrefixes(names, self.folder, self._sealing)
                    prefixes.refresh()
                    found.prefixes = prefixes
                elif thoroughly:
                    found.never = True
                else:  # nobody waits for that, as there is nothing yet
                    self.reader.submit(partial(look, thoroughly=True))
            except Exception:
                found.never = True
                raise

        found.first_look = self.reader.submit(partial(look, thoroughly=False))
        return found

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return self._waiting == 0

    def write(self, work: Callable[[], object], nbytes: int) -> bool:
        """Have something written in the background. False: too much waits already.

        Args:
            work: writes it.
            nbytes: what it holds of the host's memory, or of the device's, until then.
        """
        with self._lock:
            if self._waiting and self._waiting + nbytes > MOST_WAITING:
                return False
            self._waiting += nbytes

        def done(_: Future[Any]) -> None:
            with self._lock:
                self._waiting -= nbytes

        self.writer.submit(work).add_done_callback(done)
        return True

    def close(self, timeout: float | None) -> bool:
        """Write what waits, as far as there is time. Gives whether all has ended within ``timeout`` seconds."""
        until = time.monotonic() + (CLOSE_SECONDS if timeout is None else timeout)
        atexit.unregister(self.close)
        with suppress(TimeoutError, CancelledError):
            self.writer.submit(int).result(max(0.0, until - time.monotonic()))
        ended = self.writer.close(max(0.0, until - time.monotonic()))
        return self.reader.close(max(0.0, until - time.monotonic())) and ended
