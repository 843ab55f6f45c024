"""Prompts that begin alike and come at the same time: one reads what they share, and the others wait for it."""

from __future__ import annotations

from collections.abc import Iterable

from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, common_prefix
from langchain_gemma_jax.engine.requests.prompt import whole_media
from langchain_gemma_jax.engine.requests.request import Request

WORTH_WAITING = 64  # tokens: a prompt waits for another one that is just reading so many of the same


def will_be_shared(request: Request, running: Iterable[Request], index: PrefixIndex) -> bool:
    """Whether another request is just reading what this one begins with, so that it is better to wait for that."""
    asked = request.asked
    readers = [r for r in running if r.to_read > 1 and r.group[0] == request.group[0] and r.asked.scope == asked.scope]
    if not readers:
        return False
    have = index.plan(asked.prompt.keys, asked.scope).length
    prompt = asked.prompt.keys.tobytes()
    for reader in readers:
        limit = min(len(asked.prompt), len(reader.asked.prompt)) - 1
        common = whole_media(asked.prompt.keys, common_prefix(prompt, reader.asked.prompt.keys, limit))
        waits = common in reader.progress.marks  # and goes on waiting: what is read meanwhile is what it waits for
        if reader.held < common and (waits or common - have >= WORTH_WAITING):
            reader.progress.marks.add(common)
            return True
    return False
