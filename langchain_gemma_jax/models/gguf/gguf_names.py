"""The tensor names of GGUF files: Gemma 1 to 4."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.checkpoint.hf_names import names_of
from langchain_gemma_jax.models.configuration.abstract import TEXT_MATRIX, ArraySpec, Path, abstract, walk
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.gguf.gguf_config import DENSE
from langchain_gemma_jax.models.gguf.gguf_source import FACTOR
from langchain_gemma_jax.models.seams.tensor_source import Naming, Part, as_number
from langchain_gemma_jax.models.seams.weights import is_matrix

# Ours → theirs, where one stored tensor is the whole array.
_OF_MODEL: Mapping[str, str] = {
    "embed": "token_embd.weight",
    "head": "output.weight",
    "final_norm": "output_norm.weight",
    "ple_embed": "per_layer_token_embd.weight",
    "ple_in": "per_layer_model_proj.weight",
    "ple_in_norm": "per_layer_proj_norm.weight",
    **{f"{TEXT_MATRIX}{number}": name for number, name in enumerate(DENSE)},
}
_OF_LAYER: Mapping[str, str] = {
    "attn_norm": "attn_norm.weight",
    "q_norm": "attn_q_norm.weight",
    "k_norm": "attn_k_norm.weight",
    "attn_out": "attn_output.weight",
    "post_attn_norm": "post_attention_norm.weight",
    "ffw_norm": "ffn_norm.weight",
    "down": "ffn_down.weight",
    "post_ffw_norm": "post_ffw_norm.weight",
    "dense_post_norm": "post_ffw_norm_1.weight",
    "moe_norm": "pre_ffw_norm_2.weight",
    "moe_post_norm": "post_ffw_norm_2.weight",
    "router_scale": "ffn_gate_inp.scale",
    "router": "ffn_gate_inp.weight",
    "expert_scale": "ffn_down_exps.scale",
    "experts_down": "ffn_down_exps.weight",
    "ple_gate": "inp_gate.weight",
    "ple_out": "proj.weight",
    "ple_norm": "post_norm.weight",
    "scale": "layer_output_scale.weight",
}
_EXPERTS = "ffn_gate_up_exps.weight"  # older files have gate and up in two tensors

# Tensors for images and sound in files that Ollama converted, and tensors that are recomputed.
_OTHER_TOWERS = re.compile(r"(v|mm|a|s)\.|rope_freqs\.weight|blk\.\d+\.(rope_freqs\.weight|attn_rot_embd)")


@dataclass(frozen=True)
class GgufNaming:
    """The ``Naming`` of one file."""

    experts_apart: bool

    def __call__(self, config: ModelConfig, path: Path) -> list[Part]:
        shape = _specs(config)[path].shape
        match path:
            case ("layers", int(index), str(key)):
                return self._of_layer(config, index, key, shape)
            case _:
                return [Part(_OF_MODEL[str(path[0])], shape)]

    def _of_layer(self, config: ModelConfig, index: int, key: str, shape: tuple[int, ...]) -> list[Part]:
        layer, at = config.layers[index], f"blk.{index}."
        match key:
            case "qkv":
                rows = {"q": config.heads * layer.head_dim}
                if layer.owns_kv:
                    rows["k"] = layer.kv_heads * layer.head_dim
                    if not layer.k_eq_v:
                        rows["v"] = rows["k"]
                return [Part(f"{at}attn_{name}.weight", (size, config.width)) for name, size in rows.items()]
            case "gate_up":
                return [Part(f"{at}ffn_{name}.weight", (layer.ffw_width, config.width)) for name in ("gate", "up")]
            case "experts_gate_up":
                if not self.experts_apart:
                    return [Part(at + _EXPERTS, shape)]
                half = (shape[0], shape[1] // 2, shape[2])
                return [Part(f"{at}ffn_{name}_exps.weight", half) for name in ("gate", "up")]
            case "scale":
                return [Part(at + _OF_LAYER[key], (1,), as_number)]
            case _:
                return [Part(at + _OF_LAYER[key], shape)]


@lru_cache(maxsize=1)
def _specs(config: ModelConfig) -> dict[Path, ArraySpec]:
    return dict(walk(abstract(config)))


def gguf_naming(config: ModelConfig, names: Collection[str], location: str) -> Naming:
    """Return the naming for these stored names, after a check that each of them has a use.

    Raises:
        TensorMismatchError: a tensor has no place in the configuration.
    """
    naming = GgufNaming(any(name.endswith(".ffn_gate_exps.weight") for name in names))
    specs = _specs(config)
    parts = [part for path, spec in specs.items() if is_matrix(spec) for part in naming(config, path)]
    # An input's scale is for processors that multiply in four bits. Elsewhere inputs are not rounded to them.
    scales = {part.name.removesuffix(".weight") + end for part in parts for end in (FACTOR, ".input_scale")}
    unused = set(names) - {part.name for path in specs for part in naming(config, path)} - scales
    unknown = sorted(filter(_is_unknown(config), unused))
    if unknown:
        raise TensorMismatchError(
            location,
            f"the tensors of a {config.generation} text model of {len(config.layers)} layers, and no others",
            f"also {names_of(unknown)}",
            "This is a kind of file that is not supported (an adapter, or one with biases).",
        )
    return naming


def _is_unknown(config: ModelConfig) -> Callable[[str], bool]:
    shared = {
        f"blk.{index}.{name}.weight"  # published, though nothing reads them
        for index, layer in enumerate(config.layers)
        if not layer.owns_kv
        for name in ("attn_k", "attn_v", "attn_k_norm")
    }

    def unknown(name: str) -> bool:
        return not (name in shared or _OTHER_TOWERS.match(name))

    return unknown
