"""The ids of recent answers, so that a conversation that comes back is read as it was generated.

Text that is encoded anew can have other ids than those that the model generated, and then its KV cannot be reused.
An answer is found by what it says, thinks and calls: one that was changed in between is not found, and one that was
sent through JSON, or by somebody who keeps no ids of messages, is.
"""

from __future__ import annotations

import hashlib
import json
import threading
import weakref
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
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

    def keep(self, scope: str, dialect: str, answer: Message, ids: Sequence[int]) -> None:
        """Remember what an answer was generated as."""
        if not ids or len(ids) > self._most:
            return
        key = _key(scope, dialect, answer)
        with self._lock:
            self._held -= len(self._ids.pop(key, ()))
            self._ids[key] = array("i", ids)
            self._held += len(ids)
            while self._held > self._most:
                _, oldest = self._ids.popitem(last=False)
                self._held -= len(oldest)

    def of(self, scope: str, dialect: str, messages: Sequence[Message]) -> Mapping[int, Sequence[int]]:
        """The ids of those of a conversation's messages that are answers which are remembered, by their numbers."""
        wanted = {
            number: _key(scope, dialect, each) for number, each in enumerate(messages) if each.role == "assistant"
        }
        found: dict[int, Sequence[int]] = {}
        with self._lock:
            for number, key in wanted.items():
                if (ids := self._ids.get(key)) is not None:
                    self._ids.move_to_end(key)
                    found[number] = ids
        return found


def answers_of(model: Model) -> Answers:
    """Those of this model. They go when the model goes."""
    with _lock:
        return _by_model.setdefault(model, Answers())


def _key(scope: str, dialect: str, answer: Message) -> bytes:
    calls = [(call.name, call.arguments) for call in answer.calls]
    whole = json.dumps([scope, dialect, *spoken(answer), calls], sort_keys=True, default=repr)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()
