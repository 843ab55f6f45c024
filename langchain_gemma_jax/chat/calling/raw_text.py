"""Texts that a model continues as they are: no chat format, no turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.served_model import load, submit
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import ContextLengthError, InputError

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.api.generation import Generation
    from langchain_gemma_jax.models.tokenizer import Tokenizer

FILL_IN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")  # before the text, the suffix and the answer


def begin_text(text: str, suffix: str | None, options: Options, clock: Clock) -> Generation:
    """Have the engine continue a text; with a ``suffix``, write what is between the two.

    Raises:
        InputError: the model cannot fill in. Other errors as ``engine().load`` and ``engine().submit`` have them.
    """
    served = load(options.model, options.how_to_load, options.keep_alive, clock)
    ids = text_ids(text, suffix, served.model.tokenizer, served.name)
    most = min(options.max_context or served.max_context, served.max_context)
    if len(ids) >= most:
        raise ContextLengthError(len(ids), most - 1, f"take a model with a longer context than {served.name}")
    sampling = options.sampling(served.model.generation_defaults, served.name)
    room = most - len(ids)
    most = room if sampling.max_tokens is None else min(sampling.max_tokens, room)
    return submit(served, ids, sampling.with_checked(max_tokens=most), options, clock)


def text_ids(text: str, suffix: str | None, tokenizer: Tokenizer, name: str) -> list[int]:
    """Return the ids that a model reads to continue a text. No text becomes a control token."""
    if suffix is None:
        return [*tokenizer.begin, *tokenizer.encode_text(text)] or [tokenizer.bos_id]  # it has to go on from something
    before, after, middle = (tokenizer.control_id(each) for each in FILL_IN)
    if before is None or after is None or middle is None:
        raise InputError(
            f"suffix: {name} cannot fill in between two texts, as {FILL_IN[0]} is not in its vocabulary. Use a "
            "CodeGemma, or leave the suffix out."
        )
    parts = (tokenizer.encode_text(text), tokenizer.encode_text(suffix))
    return [*tokenizer.begin, before, *parts[0], after, *parts[1], middle]
