"""An answer that is not streamed, or a larger model's if it is not to be taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from langchain_core.messages import AIMessage, BaseMessage

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import ended
from langchain_gemma_jax.chat.calling.starting import astart, beside
from langchain_gemma_jax.engine.requests.clock import Clock

_LONG_ANSWER = 2048  # tokens from which on an answer is put together in a thread, beside the event loop


async def awhole_answer(messages: Sequence[BaseMessage], asked: Options, clock: Clock) -> AIMessage:
    """Return an answer when all of it is there. The errors are those of ``astart``, and of the engine."""
    options = cast("Options | None", asked)
    while options is not None:
        call = await astart(messages, options, clock)
        done = await call.generation
        short = done.generated_tokens < _LONG_ANSWER and not call.ends_slowly
        found, options = ended(call, done) if short else await beside(ended, call, done)
    return found
