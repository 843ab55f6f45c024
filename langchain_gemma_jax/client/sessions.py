"""Names of conversations, by which routers send all turns of one to the engine that has its KV cache."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from langchain_gemma_jax.wire.message_forms import to_json


def session_of(messages: Sequence[Mapping[str, Any]], scope: str) -> str | None:
    """Return the name of a conversation: the same in each of its turns, and in each process.

    A digest of the thread's id, where the call is part of a graph that has one; else of the messages up to the first
    one of a person. None: no person has said anything.
    """
    if thread := _thread():
        return _digest(["thread", scope, thread])
    beginning = list(takewhile(lambda each: each["type"] != "human", messages))
    if len(beginning) == len(messages):
        return None
    beginning.append(messages[len(beginning)])
    # What is generated again for each call, such as a message's id, is no part of it.
    return _digest(["beginning", scope, [[each["type"], each.get("content")] for each in beginning]])


def _digest(parts: list[Any]) -> str:
    return hashlib.blake2b(to_json(parts), digest_size=16).hexdigest()


def _thread() -> str:
    from langchain_core.runnables.config import var_child_runnable_config

    config = var_child_runnable_config.get() or {}
    thread = config.get("configurable", {}).get("thread_id")
    return thread if isinstance(thread, str) else ""
