"""The tensor names of Hugging Face checkpoints: Gemma 1 to 4, alone or as a multimodal model's text tower."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.configuration.abstract import TEXT_MATRIX, ArraySpec, Path, abstract, walk
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.seams.tensor_source import Naming, Part, as_number

PREFIXES = (
    *("model.", "", "language_model.model.", "model.language_model."),
    *("model.language_model.model.", "model.model.language_model.", "model.model.language_model.model."),
)
"""Prefixes of the text tower's names. The second two are those of multimodal checkpoints, older and newer; the others
those of a multimodal model within another one, as ShieldGemma 2 is stored."""

HEADS = tuple(
    f"{around}lm_head.weight"
    for around in ("", "language_model.", "model.", "model.language_model.", "model.model.language_model.")
)

_EMBED = "embed_tokens.weight"

# Ours → theirs, where one stored tensor is the whole array.
_OF_MODEL: Mapping[str, str] = {
    "embed": _EMBED,
    "final_norm": "norm.weight",
    "ple_embed": "embed_tokens_per_layer.weight",
    "ple_in": "per_layer_model_projection.weight",
    "ple_in_norm": "per_layer_projection_norm.weight",
}
_OF_LAYER: Mapping[str, str] = {
    "attn_norm": "input_layernorm.weight",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
    "attn_out": "self_attn.o_proj.weight",
    "post_attn_norm": "post_attention_layernorm.weight",
    "ffw_norm": "pre_feedforward_layernorm.weight",
    "down": "mlp.down_proj.weight",
    "post_ffw_norm": "post_feedforward_layernorm.weight",
    "dense_post_norm": "post_feedforward_layernorm_1.weight",
    "moe_norm": "pre_feedforward_layernorm_2.weight",
    "moe_post_norm": "post_feedforward_layernorm_2.weight",
    "router_scale": "router.scale",
    "router": "router.proj.weight",
    "expert_scale": "router.per_expert_scale",
    "experts_gate_up": "experts.gate_up_proj",
    "experts_down": "experts.down_proj",
    "ple_gate": "per_layer_input_gate.weight",
    "ple_out": "per_layer_projection.weight",
    "ple_norm": "post_per_layer_input_norm.weight",
}

# EmbeddingGemma 2 keeps the tensors of its per-layer inputs in separate blocks.
_BLOCKS = {"ple_in": "ple.", "ple_in_norm": "ple."} | dict.fromkeys(("ple_gate", "ple_out", "ple_norm"), "ple_block.")
_PROJECTION = "embedding_projection.weight"

# A drafter's own tensors, which have no prefix.
_OF_DRAFTER: Mapping[str, str] = {
    "from_target": "pre_projection.weight",
    "to_target": "post_projection.weight",
    "centroids": "masked_embedding.centroids.weight",
}
TOKEN_ORDER = "masked_embedding.token_ordering"  # noqa: S105  no password
"""A drafter's tokens by group: whole numbers, which have no place among the arrays of a configuration."""

# Tensors that a checkpoint may hold in addition to the text tower's.
_OTHER_TOWERS = re.compile(
    r"(model\.)*(vision_tower|vision_embedder|embed_vision|multi_modal_projector|audio_tower|embed_audio)\."
)
_BUFFER = re.compile(r"(.*\.)?rotary_emb\.\w*inv_freq")  # recomputed, never read


@dataclass(frozen=True)
class HfNaming:
    """The ``Naming`` of one checkpoint: its prefix, and the name of its output matrix."""

    prefix: str
    head: str
    dense: tuple[str, ...] = ()  # of an embedding model: the matrices after the mean
    ffw_norm: str = _OF_LAYER["ffw_norm"]  # the norm before feed-forward

    def __call__(self, config: ModelConfig, path: Path) -> list[Part]:
        shape = _specs(config)[path].shape
        match path:
            case ("layers", int(index), str(key)):
                return self._of_layer(config, index, key, shape)
            case (str(key),) if key.startswith(TEXT_MATRIX):
                return [Part(self._text_matrices(config)[int(key.removeprefix(TEXT_MATRIX))], shape)]
            case ("head",):
                return [Part(self.head, shape)]
            case (str(key),) if key in _OF_DRAFTER:
                return [Part(_OF_DRAFTER[key], shape)]
            case _:
                return [Part(self.prefix + _block(config, str(path[0])) + _OF_MODEL[str(path[0])], shape)]

    def _text_matrices(self, config: ModelConfig) -> tuple[str, ...]:
        inside = config.embedding is not None and config.embedding.inside
        return (self.prefix + _PROJECTION, *self.dense) if inside else self.dense

    def _of_layer(self, config: ModelConfig, index: int, key: str, shape: tuple[int, ...]) -> list[Part]:
        layer, at = config.layers[index], f"{self.prefix}layers.{index}."
        match key:
            case "qkv":
                rows = {"q": config.heads * layer.head_dim}
                if layer.owns_kv:
                    rows["k"] = layer.kv_heads * layer.head_dim
                    if not layer.k_eq_v:
                        rows["v"] = rows["k"]
                return [Part(f"{at}self_attn.{name}_proj.weight", (size, config.width)) for name, size in rows.items()]
            case "gate_up":
                return [Part(f"{at}mlp.{name}_proj.weight", (layer.ffw_width, config.width)) for name in ("gate", "up")]
            case "scale":
                return [Part(f"{at}layer_scalar", (1,), as_number)]
            case "ffw_norm":
                return [Part(at + self.ffw_norm, shape)]
            case _:
                return [Part(at + _block(config, key) + _OF_LAYER[key], shape)]


def _block(config: ModelConfig, key: str) -> str:
    """Return the name of the block that holds a tensor of the per-layer inputs; empty if there is none."""
    ple = config.per_layer_input
    return _BLOCKS.get(key, "") if ple is not None and not ple.vocab_size else ""


@lru_cache(maxsize=1)
def _specs(config: ModelConfig) -> dict[Path, ArraySpec]:
    return dict(walk(abstract(config)))


def hf_naming(config: ModelConfig, names: Collection[str], location: str, dense: tuple[str, ...] = ()) -> Naming:
    """Return the naming for these stored names, after a check that each of them has a use.

    Raises:
        TensorMismatchError: there is no embedding, or a tensor has no place in the configuration.
    """
    prefix = next((prefix for prefix in PREFIXES if prefix + _EMBED in names), None)
    if prefix is None:
        expected = " or ".join(prefix + _EMBED for prefix in PREFIXES)
        raise TensorMismatchError(location, f"a tensor {expected}", names_of(names))
    head = next((head for head in HEADS if head in names), HEADS[0])
    naming = HfNaming(prefix, head, dense, _before_ffw(config, prefix, names))
    unused = set(names) - {part.name for path in _specs(config) for part in naming(config, path)}
    unknown = sorted(filter(_is_unknown(config, prefix), unused))
    if unknown:
        raise TensorMismatchError(
            location,
            f"the tensors of a {config.generation} text model of {len(config.layers)} layers, and no others",
            f"also {names_of(unknown)}",
            "config.json may belong to another model, or this is a kind of checkpoint that is not supported "
            "(quantized, or with biases or adapters).",
        )
    return naming


def _before_ffw(config: ModelConfig, prefix: str, names: Collection[str]) -> str:
    """Return the name of the norm before feed-forward. Gemma 1 calls it as others do the norm after attention."""
    own, other = _OF_LAYER["ffw_norm"], _OF_LAYER["post_attn_norm"]
    return other if not config.post_norms and f"{prefix}layers.0.{own}" not in names else own


def _is_unknown(config: ModelConfig, prefix: str) -> Callable[[str], bool]:
    shared = {
        f"{prefix}layers.{index}.self_attn.{name}.weight"  # published, though nothing reads them
        for index, layer in enumerate(config.layers)
        if not layer.owns_kv
        for name in ("k_proj", "v_proj", "k_norm")
    }
    others = set(HEADS) if config.tied_head else set()  # when tied, a copy of the embedding
    if config.drafting is not None and config.drafting.centroids:
        others.add(TOKEN_ORDER)

    def unknown(name: str) -> bool:
        return not (name in shared or name in others or _OTHER_TOWERS.match(name) or _BUFFER.fullmatch(name))

    return unknown


def names_of(names: Collection[str]) -> str:
    """Return the first few of these names as text for a message."""
    few = ", ".join(_few(names))
    return f"{few} and {len(names) - 5} more" if len(names) > 5 else few or "no tensor at all"


def _few(names: Collection[str]) -> Iterator[str]:
    return (short(name) for _, name in zip(range(5), sorted(names), strict=False))
