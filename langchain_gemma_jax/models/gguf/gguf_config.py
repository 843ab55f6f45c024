"""The metadata of a GGUF file as a ``ModelConfig``.

The metadata are translated to the fields of a ``config.json``, and read and checked as one. For what they leave out,
llama.cpp has fixed values for an architecture or a size, which it identifies by the number of layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from langchain_gemma_jax.errors import ConfigError, TensorMismatchError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.config_fields import GLOBAL, LOCAL, MOST_LAYERS
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.model_config import EmbeddingConfig, ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.gguf.fields import Metadata
from langchain_gemma_jax.models.gguf.gguf_source import GgufSource

EMBED, HEAD, PLE_EMBED, ROPE_FREQS = (
    "token_embd.weight", "output.weight", "per_layer_token_embd.weight", "rope_freqs.weight",
)  # fmt: skip
DENSE = ("dense_2.weight", "dense_3.weight")  # of an embedding model: the matrices behind the mean, in order
MEAN = 1  # the pooling of tokens that EmbeddingGemma has
_PROMPTS = (("query", "task: search result | query: "), ("document", "title: none | text: "))
"""The words before a text that EmbeddingGemma was trained with. Its GGUF files leave them out."""
GEMMA_2_27B, GEMMA_3_27B = 46, 62  # layers of those sizes whose queries are scaled by width / heads
GEMMA_3_STRETCHED = (34, 48, 62)  # layers of the sizes that were trained with positions divided by eight
GEMMA_3_1B = 26  # older files of Ollama's give this size a cap on its scores, which it does not have
_OTHERS = {
    "gemma3n": "Gemma 3n is not supported: its AltUp and Laurel blocks are not implemented. Gemma 4 E2B and E4B are "
    "the same sizes.",
    "gemma4-assistant": "This is a drafter for another model, and cannot answer by itself. A model takes one of "
    "safetensors: drafter=.",
    "clip": "This is the image part of a model (mmproj). Give the file with its text part.",
}


def config_from_gguf(metadata: Metadata, source: GgufSource) -> ModelConfig:
    """Return the configuration of a Gemma.

    Raises:
        UnsupportedModelError: a model of another family, or one that is not implemented.
        ConfigError: a value is missing, malformed or cannot be.
    """
    kind = metadata.architecture
    if kind not in _READERS:
        advice = _OTHERS.get(kind, "Other families can be run with other programs.")
        known = ", ".join(_READERS)
        raise UnsupportedModelError(
            f"{metadata.location}: expected a Gemma (general.architecture {known}), found {short(kind)}. {advice}"
        )
    return _READERS[kind](_Reading(metadata, source))


class _Reading:
    """One file's metadata, and its tensors for what these leave out."""

    def __init__(self, metadata: Metadata, source: GgufSource) -> None:
        self.metadata, self.source = metadata, source
        self.layers = self.size("block_count")
        if self.layers > MOST_LAYERS:
            raise metadata.error(metadata.own("block_count"), f"at most {MOST_LAYERS}", self.layers)

    def size(self, name: str) -> int:
        """Return a required whole number."""
        value = self.metadata.whole(self.metadata.own(name))
        if value is None:
            raise ConfigError(f"{self.metadata.location}: expected a value of {self.metadata.own(name)}, found none.")
        return value

    def number(self, *names: str, default: float | None) -> float | None:
        """Return the value of the first of these names that exists."""
        for name in names:
            if (value := self.metadata.number(self.metadata.own(name))) is not None:
                return value
        return default

    def shape(self, name: str, rank: int) -> tuple[int, ...]:
        """Return the shape of a required tensor."""
        if name not in self.source.names():
            raise TensorMismatchError(self.source.location, f"a tensor {name!r}", "no tensor of that name")
        shape = self.source.shape(name)
        if len(shape) != rank:
            raise TensorMismatchError(self.source.location, f"{name!r} with {rank} axes", f"the shape {list(shape)}")
        return shape

    def each(self, name: str, counts: int) -> list[int]:
        """Return a value for each layer. The file has one for all layers, or one for each."""
        values = self.metadata.whole_numbers(self.metadata.own(name))
        if values is None:
            return [self.size(name)] * counts
        if len(values) != counts:
            raise self.metadata.error(self.metadata.own(name), f"a list of {counts}", f"one of {len(values)}")
        return values

    def shared(self, model_type: str) -> dict[str, Any]:
        """Return the fields that all architectures have."""
        metadata, token = self.metadata, "tokenizer.ggml"
        ends = [metadata.whole(f"{token}.{name}_token_id") for name in ("eos", "eot", "eom")]
        ends += metadata.whole_numbers(f"{token}.eos_token_ids") or []
        return {
            "model_type": model_type,
            "num_hidden_layers": self.layers,
            "vocab_size": self.shape(EMBED, 2)[0],
            "hidden_size": self.size("embedding_length"),
            "num_attention_heads": self.size("attention.head_count"),
            "max_position_embeddings": self.size("context_length"),
            "rms_norm_eps": self.number("attention.layer_norm_rms_epsilon", default=1e-6),
            "tie_word_embeddings": HEAD not in self.source.names(),
            "bos_token_id": metadata.whole(f"{token}.bos_token_id", 2),
            "eos_token_id": list(dict.fromkeys(end for end in ends if end is not None)) or [1],
            "pad_token_id": metadata.whole(f"{token}.padding_token_id", 0),
        }

    def alike(self, model_type: str) -> dict[str, Any]:
        """Return the fields of the architectures whose layers differ only in their attention."""
        return self.shared(model_type) | {
            "intermediate_size": self.size("feed_forward_length"),
            "num_key_value_heads": self.size("attention.head_count_kv"),
            "head_dim": self.head_dim(),
        }

    def head_dim(self, suffix: str = "") -> int:
        """Return the size of a head, the same for keys and values."""
        key = self.metadata.own(f"attention.key_length{suffix}")
        if self.metadata.whole(key) is None and not suffix:
            return self.size("embedding_length") // max(1, self.size("attention.head_count"))
        keys, values = self.size(f"attention.key_length{suffix}"), self.size(f"attention.value_length{suffix}")
        if keys != values:
            raise self.metadata.error(self.metadata.own(f"attention.value_length{suffix}"), f"{keys}, as keys", values)
        return keys

    def query_scalar(self, layers: int) -> int:
        """Return the number whose root queries are divided by. It differs for the size with ``layers`` layers."""
        if self.layers == layers:
            return self.size("embedding_length") // max(1, self.size("attention.head_count"))
        return self.head_dim()

    def layer_types(self, default: int) -> list[str]:
        """Return the kind of each layer: from a list, from a period, or by the architecture's default period."""
        name = self.metadata.own("attention.sliding_window_pattern")
        pattern = self.metadata.whole_numbers(name)
        if pattern is None:
            period = self.metadata.whole(name, default) or default
            pattern = [int((index + 1) % period != 0) for index in range(self.layers)]
        if len(pattern) != self.layers:
            raise self.metadata.error(name, f"a list of {self.layers}", f"one of {len(pattern)}")
        return [LOCAL if local else GLOBAL for local in pattern]

    def read(self, raw: Mapping[str, Any], **changes: object) -> ModelConfig:
        """Return the configuration for these fields of a ``config.json``."""
        location = f"{self.metadata.location} (its metadata in the words of config.json)"
        return config_from_hf(raw, location).replace(**changes)


def _gemma(f: _Reading) -> ModelConfig:
    raw = f.alike("gemma") | {"rope_theta": f.number("rope.freq_base", default=10_000.0)}
    return f.read(raw, norm_offset=0.0)


def _gemma2(f: _Reading) -> ModelConfig:
    raw = f.alike("gemma2") | {
        "rope_theta": f.number("rope.freq_base", default=10_000.0),
        "layer_types": f.layer_types(2),
        "sliding_window": f.metadata.whole(f.metadata.own("attention.sliding_window"), 4096),
        "attn_logit_softcapping": f.number("attn_logit_softcapping", default=50.0),
        "final_logit_softcapping": f.number("final_logit_softcapping", default=30.0),
        "query_pre_attn_scalar": f.query_scalar(GEMMA_2_27B),
    }
    return f.read(raw, norm_offset=0.0)


def _gemma3(f: _Reading) -> ModelConfig:
    return f.read(_as_gemma3(f), norm_offset=0.0)


def _as_gemma3(f: _Reading) -> dict[str, Any]:
    window = f.metadata.whole(f.metadata.own("attention.sliding_window"))
    raw = f.alike("gemma3_text") | {
        "layer_types": [GLOBAL] * f.layers if window is None else f.layer_types(6),
        "sliding_window": window or 512,
        "rope_theta": f.number("rope.freq_base", "rope.global.freq_base", default=1_000_000.0),
        "rope_local_base_freq": f.number("rope.freq_base_swa", "rope.local.freq_base", default=10_000.0),
        "rope_scaling": _stretched(f),
        "query_pre_attn_scalar": f.query_scalar(GEMMA_3_27B),
    }
    if f.layers != GEMMA_3_1B:
        raw["final_logit_softcapping"] = f.number("final_logit_softcapping", default=None) or None
    return raw


def _embedding_gemma(f: _Reading) -> ModelConfig:
    name = f.metadata.own("pooling_type")
    if (pooling := f.metadata.whole(name, MEAN)) != MEAN:
        raise f.metadata.error(name, f"{MEAN}, the mean of all tokens", pooling)
    raw = _as_gemma3(f) | {"use_bidirectional_attention": True}
    dense = [f.shape(name, 2) for name in DENSE if name in f.source.names()]
    width = f.size("embedding_length")
    for outputs, inputs in dense:
        if inputs != width:
            raise TensorMismatchError(f.source.location, f"a matrix of {width} inputs behind the mean", f"{inputs}")
        width = outputs
    embedding = EmbeddingConfig(tuple((outputs, inputs) for outputs, inputs in dense), prompts=_PROMPTS)
    return f.read(raw, norm_offset=0.0, embedding=embedding)


def _stretched(f: _Reading) -> dict[str, object] | None:
    kind = f.metadata.text(f.metadata.own("rope.scaling.type"), "")
    if not kind:
        return {"rope_type": "linear", "factor": 8.0} if f.layers in GEMMA_3_STRETCHED else None
    if kind == "none":
        return None
    return {"rope_type": kind, "factor": f.number("rope.scaling.factor", default=1.0)}


def _gemma4(f: _Reading) -> ModelConfig:
    types = f.layer_types(6)
    types[-1] = GLOBAL
    shared = f.metadata.whole(f.metadata.own("attention.shared_kv_layers"), 0) or 0
    everywhere, local = f.head_dim(), f.head_dim("_swa")
    turned = f.metadata.whole(f.metadata.own("rope.dimension_count_swa"), local)
    if turned != local:
        raise f.metadata.error(f.metadata.own("rope.dimension_count_swa"), f"{local}, all of a head", turned)
    heads = f.each("attention.head_count_kv", f.layers)
    widths = f.each("feed_forward_length", f.layers)
    has = [f"blk.{index}.attn_v.weight" in f.source.names() for index in range(f.layers)]
    owners = range(max(0, f.layers - shared))
    raw = f.shared("gemma4_text") | {
        "layer_types": types,
        "intermediate_size": widths[0] if widths else 1,
        "sliding_window": f.size("attention.sliding_window"),
        "num_kv_shared_layers": shared,
        "head_dim": local,
        "num_key_value_heads": heads[0] if heads else 1,
        "per_layer_config": {
            str(index): {"head_dim": everywhere if types[index] == GLOBAL else local, "num_key_value_heads": count}
            for index, count in enumerate(heads)
        },
        "attention_k_eq_v": any(types[index] == GLOBAL and not has[index] for index in owners),
        "final_logit_softcapping": f.number("final_logit_softcapping", default=None),
        "rope_parameters": {
            LOCAL: {"rope_type": "default", "rope_theta": f.number("rope.freq_base_swa", default=10_000.0)},
            GLOBAL: {
                "rope_type": "proportional",
                "rope_theta": f.number("rope.freq_base", default=1_000_000.0),
                "partial_rotary_factor": _rotated_share(f, everywhere),
            },
        },
        "hidden_size_per_layer_input": f.metadata.whole(f.metadata.own("embedding_length_per_layer_input"), 0),
    }
    if raw["hidden_size_per_layer_input"]:
        raw["vocab_size_per_layer_input"] = f.shape(PLE_EMBED, 2)[0]
    if experts := f.metadata.whole(f.metadata.own("expert_count"), 0):
        raw |= {
            "enable_moe_block": True,
            "num_experts": experts,
            "top_k_experts": f.size("expert_used_count"),
            "moe_intermediate_size": f.size("expert_feed_forward_length"),
        }
    config = f.read(raw)
    if min(widths) < 1:
        raise f.metadata.error(f.metadata.own("feed_forward_length"), "at least 1", min(widths))
    layers = [
        layer if layer.ffw_width == width else replace(layer, ffw_width=width)
        for layer, width in zip(config.layers, widths, strict=True)
    ]
    return config.replace(layers=tuple(layers))


def _rotated_share(f: _Reading, head_dim: int) -> float:
    """Return the share of a global layer's heads that is rotated: pairs with the divisor 1 instead of 1e30."""
    (size,) = f.shape(ROPE_FREQS, 1)
    if size != head_dim // 2:
        expected = f"{ROPE_FREQS!r} of {head_dim // 2} numbers, half a head"
        raise TensorMismatchError(f.source.location, expected, f"{size}")
    divisors = f.source.read(ROPE_FREQS).astype("float32")
    turned = int((divisors == 1).sum())
    if turned == 0 or not (divisors[:turned] == 1).all() or not (divisors[turned:] > 1e20).all():
        expected = f"{ROPE_FREQS!r} to begin with ones and go on with 1e30"
        raise TensorMismatchError(f.source.location, expected, short(divisors.tolist()[:8]))
    return turned / size


_READERS: Mapping[str, Callable[[_Reading], ModelConfig]] = {
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma4": _gemma4,
    "gemma-embedding": _embedding_gemma,
}
