"""Texts that a model continues as they are: no chat format, no turns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from langchain_gemma_jax.chat.asking.options import Options, name_source
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import ContextLengthError, GemmaJaxError, InputError

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.api.generation import Generation
    from langchain_gemma_jax.models.tokenizer import Tokenizer

FILL_IN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")  # before the text, the suffix and the answer


def begin_text(text: str, suffix: str | None, options: Options, clock: Clock) -> Generation:
    """Have the engine continue a text; with a ``suffix``, write what is between the two.

    Raises:
        InputError: the model cannot fill in. Other errors as ``engine().load`` and ``engine().submit`` have them.
    """
    from langchain_gemma_jax.engine.api.process import engine

    load = partial(engine().load, options.model, **options.how_to_load.arguments())
    try:
        served = load() if clock.left is None else load(timeout=clock.left)
    except GemmaJaxError as error:
        name_source(error, options.model)
        raise
    if options.keep_alive is not None:
        engine().keep_alive(served, options.keep_alive)
    ids = text_ids(text, suffix, served.model.tokenizer, served.name)
    most = min(options.max_context or served.max_context, served.max_context)
    if len(ids) >= most:
        raise ContextLengthError(len(ids), most - 1, f"take a model with a longer context than {served.name}")
    sampling = options.sampling(served.model.generation_defaults, served.name)
    room = most - len(ids)
    sampling = replace(sampling, max_tokens=room if sampling.max_tokens is None else min(sampling.max_tokens, room))
    generation = engine().submit(served, ids, sampling, scope=options.scope, timeout=clock.left)
    generation.on(clock)
    return generation


def text_ids(text: str, suffix: str | None, tokenizer: Tokenizer, name: str) -> list[int]:
    """Return the ids that a model reads to continue a text. No text becomes a control token."""
    if suffix is None:
        return [tokenizer.bos_id, *tokenizer.encode_text(text)]
    before, after, middle = (tokenizer.control_id(each) for each in FILL_IN)
    if before is None or after is None or middle is None:
        raise InputError(
            f"suffix: {name} cannot fill in between two texts, as {FILL_IN[0]} is not in its vocabulary. Use a "
            "CodeGemma, or leave the suffix out."
        )
    parts = (tokenizer.encode_text(text), tokenizer.encode_text(suffix))
    return [tokenizer.bos_id, before, *parts[0], after, *parts[1], middle]
