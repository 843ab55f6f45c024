"""The chunks of a prompt: shorter behind a long context, where that costs no other program."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.steps.prompt_chunks import LEAST, LOOKS, PromptChunks

CONTEXT = 131_072


@pytest.mark.parametrize("padding_is_free", [True, False])
def test_no_chunk_of_a_very_long_prompt_keeps_others_waiting_for_long(padding_is_free):
    """All of it is read, in order, and no chunk looks back more often than allowed, unless it has the fewest tokens."""
    ladders = Ladders(chunks=(16, 256)).for_context(CONTEXT).for_kernels(padding_is_free=padding_is_free)
    sizes = SimpleNamespace(chunks=lambda *_: ladders.chunks)
    chunks = PromptChunks(ladders, lambda _: sizes, 48)
    prompt = SimpleNamespace(media=())
    request = SimpleNamespace(
        held=0, progress=SimpleNamespace(context=range(CONTEXT - 3), marks=set()), asked=SimpleNamespace(prompt=prompt)
    )
    lengths = []
    while request.held < CONTEXT - 3:
        end = chunks.next_end(request)
        first = chunks.take(request)[0]
        assert (first.tokens, first.size in ladders.chunks) == (end - request.held, True)
        lengths.append((request.held, first.tokens))
        request.held = end
    assert request.held == CONTEXT - 3
    longest = dict(lengths[:-1])
    assert longest[0] == 256
    if padding_is_free:
        assert all(tokens == LEAST or tokens * before <= LOOKS for before, tokens in longest.items())
        assert set(longest.values()) > {LEAST, 256}
    else:
        assert set(longest.values()) == {256}
