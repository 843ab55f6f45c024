"""The choice of a model's chat format."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from langchain_gemma_jax.dialects.dialect import Dialect
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.dialects.paligemma import PaliGemmaDialect
from langchain_gemma_jax.dialects.template_dialect import TemplateDialect
from langchain_gemma_jax.errors import InputError, UnsupportedModelError

NAMES = (GemmaDialect.name, FunctionGemmaDialect.name, Gemma4Dialect.name)


_GEMMAS = frozenset({"<|turn>", "<start_of_turn>"})  # tokens that begin a turn in the formats of this package


@dataclass(frozen=True)
class ModelFacts:
    """The facts of a model that decide on its chat format.

    ``generation`` and ``per_layer_input`` come from the configuration, ``control_tokens`` from the tokenizer.
    """

    generation: str
    control_tokens: Collection[str]
    per_layer_input: bool = False
    images_apart: bool = False  # True if the model's own template has empty lines around images
    both_ways: bool = False  # True if a picture and its text are read together, in both directions
    template: TemplateDialect | None = None  # the format of the model's own template, for a model that is no Gemma


def dialect_for(facts: ModelFacts, name: str | None = None) -> Dialect:
    """Return the chat format of a model, or the one with the given name.

    The control tokens of its vocabulary decide on a model's format, not its architecture: the embedded models are built
    like Gemma 3 and use Gemma 4's format. Only PaliGemma has the vocabulary of other Gemmas and none of their turns.

    Raises:
        InputError: there is no format with this name.
        UnsupportedModelError: the vocabulary has no format's control tokens.
    """
    if name is None:
        if facts.template is not None and not _GEMMAS.intersection(facts.control_tokens):
            return facts.template
        if facts.both_ways:
            return PaliGemmaDialect()
        name = _spoken(facts)
    if name == GemmaDialect.name:
        return GemmaDialect()
    if name == FunctionGemmaDialect.name:
        return FunctionGemmaDialect()
    if name == Gemma4Dialect.name:
        # E2B and E4B, the models with an input for each layer, were not trained to begin with an empty thought.
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
