"""``KeptAnswers``: the past answers of a model's scopes on disk, so that drafts of them survive a restart."""

from __future__ import annotations

import threading
from array import array
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any, Final

import numpy as np

from langchain_gemma_jax.engine.drafting.past_answers import PastAnswers
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.engine.prefix_store.prefix_file import Mark, PrefixHeader, packed
from langchain_gemma_jax.engine.prefix_store.prefix_store import ModelPrefixes, PrefixStore
from langchain_gemma_jax.engine.prefix_store.stored_prefixes import StoredPrefixes

_log = OwnLog(__name__)

MOST_ASKED: Final = 4096  # scopes whose files were looked for and that are remembered
DTYPE: Final = "int32"


class KeptAnswers:
    """One model's past answers, a file for each scope beside the prefixes, within their budget.

    A file has the tokens themselves, so there are files only where the store encrypts them. Their names are digests of
    the model and the scope. Files are read and written in the background: a request never waits for one.
    """

    def __init__(self, store: PrefixStore, there_is: ModelPrefixes, label: str) -> None:
        """``there_is`` says which model it is, once that is known. ``label``: the model's name, for people."""
        self._store, self._there_is, self._label = store, there_is, label
        self._lock = threading.Lock()
        self._asked: set[str] = set()
        self._coming: dict[str, Future[Any]] = {}

    def ask(self, scope: str) -> None:
        """Begin to read a scope's answers, if that was not done before."""
        prefixes = self._there_is.prefixes
        with self._lock:
            if prefixes is None or scope in self._asked:
                return
            if len(self._asked) >= MOST_ASKED:
                self._asked.clear()
            self._asked.add(scope)
            self._coming[scope] = self._store.reader.submit(partial(self._read, prefixes, scope))

    def comes(self, scope: str) -> bool:
        """Return True while a scope's answers are being read."""
        future = self._coming.get(scope)
        return future is not None and not future.done()

    def arrived(self, scope: str) -> PastAnswers | None:
        """Return the answers that were read for a scope, once. None: there are none, or not yet."""
        if scope not in self._coming or self.comes(scope):
            return None
        with self._lock:
            future = self._coming.pop(scope)
        try:
            found: PastAnswers | None = future.result()
        except (CancelledError, Exception) as error:  # noqa: BLE001  drafts begin again: they only save time
            _log.warning("past answers could not be read from the disk: %s", type(error).__name__)
            return None
        return found

    def write(self, scope: str, tokens: array[int]) -> bool:
        """Have a scope's answers written in the background, if anything can be. Return False if they have to wait.

        Args:
            scope: of the answers.
            tokens: as ``PastAnswers.tokens`` gives it. The caller may not change it.
        """
        prefixes = self._there_is.prefixes
        if self._there_is.never or (prefixes is not None and not prefixes.writes):
            return True
        return prefixes is not None and self._store.write(
            partial(self._write, prefixes, scope, tokens), tokens.itemsize * len(tokens)
        )

    def forget(self, scope: str) -> None:
        """Forget that a scope was asked for: its file is read again when it is needed."""
        with self._lock:
            self._asked.discard(scope)
            self._coming.pop(scope, None)

    # In a background thread.

    def _read(self, prefixes: StoredPrefixes, scope: str) -> PastAnswers | None:
        name, folder = prefixes.names.answers_file(scope), self._store.folder
        if not folder.has(name):
            return None
        header, blocks = folder.header(name, self._store.sealing), None
        if header is not None and (header.dtype, header.family, header.marks) == _claims(prefixes, scope):
            blocks = folder.blocks(name, [0], header, self._store.sealing)
        if blocks is None:
            _log.warning("past answers on the disk were damaged, and are dropped: %s", folder.path / name)
            folder.files.reject(name)
            return None
        return PastAnswers.of(array("i", np.frombuffer(blocks[0], DTYPE).tolist()))

    def _write(self, prefixes: StoredPrefixes, scope: str, tokens: array[int]) -> None:
        dtype, family, marks = _claims(prefixes, scope)
        header = PrefixHeader(
            family=family,
            label=f"answers of {self._label}",
            seconds=0.0,
            tokens=len(tokens),
            dtype=dtype,
            marks=marks,
            shapes=((len(tokens),),),
            globals=1,
        )
        parts = packed(header, [np.array(tokens, DTYPE)], self._store.sealing)
        self._store.folder.write(prefixes.names.answers_file(scope), parts)


def _claims(prefixes: StoredPrefixes, scope: str) -> tuple[str, str, tuple[Mark, ...]]:
    """Return the parts of a header that say whose answers these are, so that a file under another name is no use."""
    names = prefixes.names
    return DTYPE, names.family, (Mark(names.digest(scope, array("q"), 0), 0, None),)
