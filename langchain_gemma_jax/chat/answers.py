"""The ids of recent answers, so that a conversation that comes back is read as it was generated.

Text that is encoded anew can have other ids than those that the model generated, and then its KV cannot be reused.
An answer is found by what it says, thinks and calls, and by what was said before: one that was changed in between is
not found, and one that was sent through JSON, or by somebody who keeps no ids of messages, is.
"""

from __future__ import annotations

import hashlib
import json
import threading
import weakref
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_gemma_jax.chat.messages_in import spoken
from langchain_gemma_jax.dialects import Message

if TYPE_CHECKING:
    from langchain_gemma_jax.models.model import Model

MOST_TOKENS = 2**20  # 4 MiB a model

_lock = threading.Lock()
_by_model: weakref.WeakKeyDictionary[Model, Answers] = weakref.WeakKeyDictionary()


class Answers:
    """The ids of a model's recent answers, the least recently used of which go first. Any thread may use it."""

    def __init__(self, most_tokens: int = MOST_TOKENS) -> None:
        self._most = most_tokens
        self._held = 0
        self._ids: OrderedDict[bytes, array[int]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, scope: str, dialect: str, conversation: Sequence[Message], ids: Sequence[int]) -> None:
        """Remember what the last message of a conversation was generated as."""
        if not ids or len(ids) > self._most:
            return
        *_, key = digests(scope, dialect, conversation)
        with self._lock:
            self._held -= len(self._ids.pop(key, ()))
            self._ids[key] = array("i", ids)
            self._held += len(ids)
            while self._held > self._most:
                _, oldest = self._ids.popitem(last=False)
                self._held -= len(oldest)

    def of(self, scope: str, dialect: str, messages: Sequence[Message]) -> Mapping[int, Sequence[int]]:
        """The ids of those of a conversation's messages that are answers which are remembered, by their numbers."""
        found: dict[int, Sequence[int]] = {}
        with self._lock:
            for number, key in enumerate(digests(scope, dialect, messages)):
                if messages[number].role == "assistant" and (ids := self._ids.get(key)) is not None:
                    self._ids.move_to_end(key)
                    found[number] = ids
        return found


def answers_of(model: Model) -> Answers:
    """Those of this model. They go when the model goes."""
    with _lock:
        return _by_model.setdefault(model, Answers())


def digests(scope: str, dialect: str, conversation: Sequence[Message]) -> Iterator[bytes]:
    """For each message a digest of all up to and with it.

    The same answer can be generated in two ways in one conversation, and each has to come back in its own place.
    """
    state = hashlib.sha256(json.dumps([scope, dialect]).encode("utf-8", "surrogatepass"))
    for message in conversation:
        calls = [(call.name, call.arguments) for call in message.calls]
        value = None if message.result is None else message.result.value
        whole = json.dumps([message.role, *spoken(message), calls, value], sort_keys=True, default=repr)
        state.update(whole.encode("utf-8", "surrogatepass"))
        yield state.digest()
