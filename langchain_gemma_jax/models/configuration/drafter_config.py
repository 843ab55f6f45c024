"""The configuration of a drafter: a small Gemma 4 without keys and values of its own, which guesses another's tokens.

Google publishes one beside each size of Gemma 4, as ``gemma4_assistant`` and ``gemma4_unified_assistant``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.config_fields import Fields, Raw
from langchain_gemma_jax.models.configuration.hf_config import DRAFTERS, text_tower
from langchain_gemma_jax.models.configuration.model_config import DraftingConfig, LayerConfig, ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import short

_WIDTHS: Mapping[str, int] = {"gemma4_assistant": 1536, "gemma4_unified_assistant": 3840}
"""The target's width where a configuration says none."""


def is_drafter(raw: Raw) -> bool:
    """Return True if a parsed ``config.json`` is a drafter's."""
    kind = raw.get("model_type")
    return isinstance(kind, str) and kind in DRAFTERS


def drafter_from_hf(raw: Raw, location: str) -> ModelConfig:
    """Read a drafter's parsed ``config.json``; ``location`` is named in errors. Its layers have no source yet.

    Raises:
        UnsupportedModelError: another architecture, or an option that is not implemented.
        ConfigError: a value that is malformed or cannot be.
    """
    outer = Fields(raw, {}, location)
    if not is_drafter(raw):
        known = " or ".join(DRAFTERS)
        raise UnsupportedModelError(
            f"{location}: expected a drafter, with a model_type of {known}, found {short(raw.get('model_type'))}."
        )
    outer.refuse("quantization_config", "drafters are read unquantized, and packed like their target")
    kind, usual_width = DRAFTERS[str(raw["model_type"])], _WIDTHS[str(raw["model_type"])]
    text = outer.table("text_config")
    where = f"{location} (text_config)"
    inner = Fields(text, raw, where)
    if inner.get("model_type", kind) != kind:
        raise inner.error("model_type", repr(kind), text["model_type"])
    count = inner.size("num_hidden_layers", 30)
    if (shared := inner.get("num_kv_shared_layers", 0)) not in (0, count):
        raise inner.error("num_kv_shared_layers", f"{count}, as a drafter has no keys and values of its own", shared)
    inner.refuse("enable_moe_block", "drafters have no experts")
    inner.refuse("use_double_wide_mlp", "the layers of a drafter are alike")
    inner.refuse("hidden_size_per_layer_input", "drafters have no per-layer inputs", 0)
    plain = {**text, "num_kv_shared_layers": 0, "hidden_size_per_layer_input": 0}
    config = text_tower(kind, Fields(plain, raw, where))
    return config.replace(drafting=_drafting(outer, config, usual_width), logits_softcap=None)


def _drafting(outer: Fields, config: ModelConfig, usual_width: int) -> DraftingConfig:
    width = outer.size("backbone_hidden_size", usual_width)
    if not outer.get("use_ordered_embeddings", False):
        return DraftingConfig(width)
    groups = outer.size("num_centroids", 2048)
    if config.vocab_size % groups:
        raise outer.error("num_centroids", f"a divisor of vocab_size={config.vocab_size}", groups)
    return DraftingConfig(width, groups, outer.size("centroid_intermediate_top_k", 32, at_most=groups))


def for_target(drafter: ModelConfig, location: str, target: ModelConfig, target_name: str) -> ModelConfig:
    """Return the drafter's configuration with each layer's source among the target's layers, after a check.

    A local layer reads the target's last local layer that has keys and values, a global one the last global one.

    Raises:
        ConfigError: the drafter is for another model. The message names both, and what differs.
    """
    drafting = drafter.drafting
    if drafting is None:
        raise TypeError(f"{location} is no drafter's configuration")

    def other(what: str, of_drafter: object, of_target: object) -> ConfigError:
        return ConfigError(
            f"{location}: expected a drafter for {target_name!r}, whose {what} is {of_target}; found one for a model "
            f"whose {what} is {of_drafter}. Take the drafter that was published with {target_name!r}, or ask for "
            'none: drafter="off".'
        )

    for what, of_drafter, of_target in (
        ("generation", drafter.generation, target.generation),
        ("width (backbone_hidden_size)", drafting.target_width, target.width),
        ("vocabulary (vocab_size)", drafter.vocab_size, target.vocab_size),
    ):
        if of_drafter != of_target:
            raise other(what, of_drafter, of_target)

    def linked(layer: LayerConfig) -> LayerConfig:
        kind = "local" if layer.is_local else "global"
        sources = [index for index in target.kv_layers if target.layers[index].is_local == layer.is_local]
        if not sources:
            raise other(f"number of {kind} layers with keys and values", "at least 1", 0)
        source = target.layers[sources[-1]]
        for what in ("head_dim", "kv_heads", "window", "rope"):
            if (of_drafter := getattr(layer, what)) != (of_target := getattr(source, what)):
                raise other(f"{what} of {kind} layers", of_drafter, of_target)
        return replace(layer, kv_from=sources[-1])

    return drafter.replace(layers=tuple(linked(layer) for layer in drafter.layers))
