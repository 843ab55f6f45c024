"""``History``: the conversation of one call, with a digest of it up to each message."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from langchain_gemma_jax.chat.history.messages_in import spoken
from langchain_gemma_jax.dialects import Message
from langchain_gemma_jax.stopping import looking


class History:
    """A conversation as dialects take it. Each of its messages is digested once, when it is made.

    The same answer can be generated in two ways in one conversation, and each has to come back in its own place. So a
    digest is of a scope's conversation up to and with a message.
    """

    def __init__(self, scope: str, messages: Sequence[Message]) -> None:
        self.messages = messages
        self._state = hashlib.sha256(json.dumps([scope]).encode("utf-8", "surrogatepass"))
        self.digests: list[bytes] = []
        for message in looking(messages):
            _digest(self._state, message)
            self.digests.append(self._state.digest())

    def followed_by(self, answer: Message) -> bytes:
        """Return the digest of the conversation with one more message."""
        state = self._state.copy()
        _digest(state, answer)
        return state.digest()


def _digest(state: hashlib._Hash, message: Message) -> None:
    calls = [(call.name, call.arguments) for call in message.calls]
    value = None if message.result is None else message.result.value
    whole = json.dumps([message.role, *spoken(message), calls, value], sort_keys=True, default=repr)
    state.update(whole.encode("utf-8", "surrogatepass"))
    for part in message.media:
        state.update(part.block.digest)
