"""``PrefixStore``: an engine's prefixes on disk, for all models, and the threads that read and write them."""

from __future__ import annotations

import atexit
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixCounts, PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_names import PrefixNames, family_name
from langchain_gemma_jax.engine.prefix_store.prefix_offers import PrefixOffers
from langchain_gemma_jax.engine.prefix_store.prefix_peers import OfferedPrefixes, Peers
from langchain_gemma_jax.engine.prefix_store.sealing import Digests, Sealing
from langchain_gemma_jax.engine.prefix_store.stored_prefixes import StoredPrefixes
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged

EXIT_SECONDS = 1.0  # for which the end of the process waits for writes ...
CLOSE_SECONDS = 30.0  # ... and the end of an engine, by default
MOST_WAITING = 2**28  # bytes in memory that may wait to be written


class Worker(Protocol):
    """Background threads that run functions: a ``Background``."""

    def submit(self, work: Callable[[], Any]) -> Future[Any]: ...

    def close(self, timeout: float | None = None) -> bool: ...


@dataclass(eq=False)
class ModelPrefixes:
    """The prefixes of one model on disk, once they have been listed."""

    prefixes: StoredPrefixes | None = None
    offered: OfferedPrefixes | None = None  # by other replicas
    never: bool = False  # its files have changed, so the model cannot be identified
    first_look: Future[None] = field(default_factory=Future)  # done soon. Computing a model's digest takes longer


class PrefixStore:
    """An engine's prefixes on disk, with the threads for them."""

    def __init__(
        self,
        folder: PrefixFolder,
        reader: Worker,
        writer: Worker,
        sealing: Sealing | None = None,
        peers: Sequence[str] | None = None,
    ) -> None:
        """``peers``: the addresses of other replicas, which are asked for theirs. None: there are none.

        With peers, even an empty list of them, this process's own prefixes are offered too.
        """
        self.folder = folder
        self.reader, self.writer = reader, writer
        self.sealing: Sealing = Digests() if sealing is None else sealing
        me = secrets.token_hex(8)
        self._peers = Peers(peers, self.sealing, me) if peers else None
        self.offers = None if peers is None else PrefixOffers(folder, self.sealing.peer_token, me)
        self._waiting, self._lock = 0, threading.Lock()
        atexit.register(self.close, EXIT_SECONDS)

    @property
    def counts(self) -> PrefixCounts:
        return self.folder.counts

    @property
    def keeps_answers(self) -> bool:
        """True if past answers are kept too: they are tokens, so only encrypted, and for this machine alone."""
        return bool(self.sealing.secret) and not self.folder.shared

    def of(self, files: Unchanged, programs: Callable[[], str]) -> ModelPrefixes:
        """Begin to list one model's prefixes.

        Args:
            files: the files that it was read from.
            programs: returns a digest of everything that its programs depend on.
        """
        found = ModelPrefixes()

        def look(*, thoroughly: bool) -> None:
            try:
                known = self.folder.digest_of(files, thoroughly=thoroughly)
                if known is not None:
                    names = PrefixNames(family_name(known, programs()), self.sealing.secret)
                    prefixes = StoredPrefixes(names, self.folder, self.sealing)
                    prefixes.refresh()
                    if self._peers is not None:
                        found.offered = OfferedPrefixes(names, self._peers)
                    found.prefixes = prefixes
                elif thoroughly:
                    found.never = True
                else:  # requests do not wait for this: without a digest there are no prefixes yet
                    self.reader.submit(partial(look, thoroughly=True))
            except Exception:
                found.never = True
                raise

        found.first_look = self.reader.submit(partial(look, thoroughly=False))
        return found

    @property
    def idle(self) -> bool:
        """True if no writes are waiting."""
        return self._waiting == 0

    def write(self, work: Callable[[], object], nbytes: int) -> bool:
        """Queue a write in the background. Return False if too many bytes are waiting already.

        Args:
            work: does the write.
            nbytes: the memory of the host or the device that it holds until then.
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
        """Do the waiting writes while there is time. Return True if all threads ended within ``timeout`` seconds."""
        until = time.monotonic() + (CLOSE_SECONDS if timeout is None else timeout)
        atexit.unregister(self.close)
        with suppress(TimeoutError, CancelledError):
            self.writer.submit(int).result(max(0.0, until - time.monotonic()))
        ended = self.writer.close(max(0.0, until - time.monotonic()))
        return self.reader.close(max(0.0, until - time.monotonic())) and ended
