"""Which format a model speaks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from langchain_gemma_jax.dialects.dialect import Dialect
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.dialects.template_dialect import TemplateDialect
from langchain_gemma_jax.errors import InputError, UnsupportedModelError

NAMES = (GemmaDialect.name, FunctionGemmaDialect.name, Gemma4Dialect.name)


_GEMMAS = frozenset({"<|turn>", "<start_of_turn>"})  # begin the turns of formats that are known here


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model that its chat format depends on.

    ``generation`` is the configuration's, and so is whether there is a ``per_layer_input``; ``control_tokens`` are the
    tokenizer's.
    """

    generation: str
    control_tokens: Collection[str]
    per_layer_input: bool = False
    images_apart: bool = False  # whether the model's own template has empty lines around images
    template: TemplateDialect | None = None  # the format of the model's own template, where we know none of its tokens


def dialect_for(facts: ModelFacts, name: str | None = None) -> Dialect:
    """Return the chat format of a model, or the one of a name.

    A model speaks the format whose control tokens its vocabulary has. So a model of any architecture can
    be trained in any format: the embedded ones are built like Gemma 3 and speak Gemma 4's.

    Raises:
        InputError: there is no format of this name.
        UnsupportedModelError: the vocabulary has the control tokens of none.
    """
    if name is None:
        if facts.template is not None and not _GEMMAS.intersection(facts.control_tokens):
            return facts.template
        name = _spoken(facts)
    if name == GemmaDialect.name:
        return GemmaDialect()
    if name == FunctionGemmaDialect.name:
        return FunctionGemmaDialect()
    if name == Gemma4Dialect.name:
        # E2B and E4B, which have inputs of their own for each layer, were not trained to begin with an empty thought.
        empty_thought = facts.generation == "gemma4" and not facts.per_layer_input
        return Gemma4Dialect(empty_thought, facts.images_apart)
    raise InputError(f"dialect: expected one of {', '.join(NAMES)}, found {name!r}.")


def _spoken(facts: ModelFacts) -> str:
    tokens = facts.control_tokens
    if "<|turn>" in tokens:
        return Gemma4Dialect.name
    if "<start_function_call>" in tokens:
        return FunctionGemmaDialect.name
    if "<start_of_turn>" in tokens:
        return GemmaDialect.name
    raise UnsupportedModelError(
        "The model's vocabulary has no control token that begins a turn, neither <start_of_turn> nor <|turn>, and its "
        "files have no chat template, so its chat format is unknown. Use a checkpoint that was tuned for conversations."
    )
