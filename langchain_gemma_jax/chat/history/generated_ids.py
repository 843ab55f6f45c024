"""The ids of recent answers, so that a conversation that comes back is read as it was generated.

Text that is encoded again can have other ids than those that the model generated, and then its KV cannot be reused.
An answer is found by its text, thoughts and calls, and by the conversation before it. One that was changed in between
is not found. One that went through JSON, or lost the id of its message, is found.
"""

from __future__ import annotations

import hashlib
import weakref
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_gemma_jax.chat.history.bounded_memory import BoundedMemory
from langchain_gemma_jax.chat.history.history import History

if TYPE_CHECKING:
    from langchain_gemma_jax.models.loading.model import Model

MOST_BYTES = 4 << 20  # for the answers of a model
MOST_BYTES_ROUTED = 2 << 20  # for the models that answered, in conversations whose model is chosen


class GeneratedIds:
    """The ids of a model's recent answers, the least recently used of which go first. Any thread may use it."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._ids: BoundedMemory[bytes] = BoundedMemory(most)

    def keep(self, dialect: str, digest: bytes, ids: Sequence[int]) -> None:
        """Remember the ids that an answer was generated as. ``digest``: of the conversation that ends with it."""
        if ids:
            self._ids.keep(_key(dialect, digest), array("i", ids).tobytes())

    def of(self, dialect: str, history: History) -> Mapping[int, Sequence[int]]:
        """Return the ids of a conversation's answers that are remembered, by the numbers of their messages."""
        found: dict[int, Sequence[int]] = {}
        for number, message in enumerate(history.messages):
            if message.role == "assistant":
                ids = self._ids.get(_key(dialect, history.digests[number]))
                if ids is not None:
                    found[number] = array("i", ids)
        return found


def _key(dialect: str, digest: bytes) -> bytes:
    return hashlib.sha256(dialect.encode() + digest).digest()


class ConversationMemory:
    """The memory of conversations that an engine's callers keep for as long as it runs."""

    def __init__(self) -> None:
        self.answered: BoundedMemory[str] = BoundedMemory(
            MOST_BYTES_ROUTED
        )  # the model that gave an answer, by the digest up to it
        self._answers: weakref.WeakKeyDictionary[Model, GeneratedIds] = weakref.WeakKeyDictionary()

    def answers_of(self, model: Model) -> GeneratedIds:
        """Return the answers that a model gave. They go when the model goes."""
        found = self._answers.get(model)
        return self._answers.setdefault(model, GeneratedIds()) if found is None else found


def conversation_memory() -> ConversationMemory:
    """Return the memory of conversations that this process's engine owns. Closing the engine drops it."""
    from langchain_gemma_jax.engine.api.process import engine

    return engine().companion(ConversationMemory)
