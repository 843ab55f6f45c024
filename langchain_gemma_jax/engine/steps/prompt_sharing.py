"""Sharing of prompts that begin alike and come at the same time: one request reads the common part, others wait."""

from __future__ import annotations

from collections.abc import Iterable

from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, common_prefix
from langchain_gemma_jax.engine.requests.prompt import whole_media
from langchain_gemma_jax.engine.requests.request import Request

WORTH_WAITING = 64  # common tokens that another request is reading, for which a prompt waits


def will_be_shared(request: Request, running: Iterable[Request], index: PrefixIndex) -> bool:
    """Return True if another request is reading this one's beginning, so that it is better to wait for it."""
    asked = request.asked
    readers = [r for r in running if r.to_read > 1 and r.group[0] == request.group[0] and r.asked.scope == asked.scope]
    if not readers:
        return False
    have = index.plan(asked.prompt.keys, asked.scope).length
    prompt = asked.prompt.keys.tobytes()
    for reader in readers:
        limit = min(len(asked.prompt), len(reader.asked.prompt)) - 1
        common = whole_media(asked.prompt.keys, common_prefix(prompt, reader.asked.prompt.keys, limit))
        waits = common in reader.progress.marks  # it keeps waiting while the common part is being read
        if reader.held < common and (waits or common - have >= WORTH_WAITING):
            reader.progress.marks.add(common)
            return True
    return False
