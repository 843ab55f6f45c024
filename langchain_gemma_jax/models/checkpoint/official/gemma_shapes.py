"""The model in a tree of the official library, found by its names and shapes.

Published Orbax folders hold no configuration. The shapes of all arrays together identify a published
size. Its windows, rope and soft-caps, which no shape shows, come from the catalog.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from langchain_gemma_jax.errors import ConfigError, TensorMismatchError
from langchain_gemma_jax.models.checkpoint.official.gemma_names import GemmaNaming
from langchain_gemma_jax.models.checkpoint.official.gemma_tree import StoredArray
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.model_config import ModelConfig

_ATTENTION_OF_SHARED_KV = ("attn/kv_einsum", "attn/k_einsum", "attn/key_norm/scale")


def find_config(tower: Mapping[str, StoredArray], known: Mapping[str, ModelConfig], location: str) -> ModelConfig:
    """Return the known configuration with exactly these arrays, with the tree's vocabulary size.

    The vocabulary size comes from the tree because the library pads Gemma 2's with unused rows. If several fit
    (one size, published under several names), it is the one that ``location`` names, else the first.
    """
    fitting: dict[str, ModelConfig] = {}
    for name, config in known.items():
        candidate = with_vocabulary(config, next(iter(tower["embedder/input_embedding"].shape), 0))
        expected = _expected(candidate, find_naming(candidate, tower))
        stored = {array: tower[array].shape for array in expected if array in tower}
        if stored == expected and not _unused(candidate, expected, tower):
            fitting[name] = candidate
    if fitting:
        named = [config for name, config in fitting.items() if name in location.lower()]
        return (named or [*fitting.values()])[0]
    raise ConfigError(
        f"{location}: this model is {describe(tower)}, which is none of the known sizes ({', '.join(known)}). An Orbax "
        "checkpoint has no configuration of its own: put a config.json that describes the model, in Hugging Face's "
        "format, into its folder."
    )


def with_vocabulary(config: ModelConfig, size: int) -> ModelConfig:
    """Return ``config`` with ``size`` rows in its embedding, and in the per-layer embedding if it has one."""
    ple = config.per_layer_input
    return config.replace(vocab_size=size, per_layer_input=ple and dataclasses.replace(ple, vocab_size=size))


def find_naming(config: ModelConfig, tower: Mapping[str, StoredArray]) -> GemmaNaming:
    """Return the naming for this tree, whose gate has one of two layouts.

    Raises:
        ConfigError: the gate is square, so its shape does not tell the layout, and the generation uses both.
    """
    gate = tower.get("layer_0/mlp2/gating_einsum" if config.moe else "layer_0/mlp/gating_einsum")
    ffw = config.layers[0].ffw_width
    if gate is not None and config.width != ffw:
        return GemmaNaming(gate_out_first=gate.shape[1:] != (config.width, ffw))
    if gate is not None and config.generation == "gemma2":
        raise ConfigError(
            f"A Gemma 2 whose feed-forward is as wide as the model ({ffw}) cannot be read from a tree of Google's "
            "library: some of its Gemma 2 have layer_0/mlp/gating_einsum transposed, and the shape does not tell."
        )
    return GemmaNaming(gate_out_first=config.generation != "gemma")


def check_all_used(config: ModelConfig, naming: GemmaNaming, tower: Mapping[str, StoredArray], location: str) -> None:
    """Refuse a configuration that would leave out a part of the text tower: that would be another model."""
    if unused := _unused(config, _expected(config, naming), tower):
        raise TensorMismatchError(
            location,
            f"the arrays of a {config.generation} of {len(config.layers)} layers, and no more",
            f"{len(unused)} more, such as {unused[0]} {list(tower[unused[0]].shape)}",
            f"By its shapes it is {describe(tower)}.",
        )


def describe(tower: Mapping[str, StoredArray]) -> str:
    """Describe a tree by its names and shapes, for messages: "a Gemma 3 of 26 layers, width 1152, ..."."""

    def shape(name: str, rank: int) -> tuple[int, ...]:
        stored = tower[name].shape if name in tower else ()
        return stored if len(stored) == rank else (0,) * rank

    vocabulary, width = shape("embedder/input_embedding", 2)
    layers = len({name.split("/")[0] for name in tower if name.startswith("layer_")})
    heads, _, size = shape("layer_0/attn/q_einsum", 3)
    if "layer_0/attn/qkv_einsum" in tower:
        _, heads, _, size = shape("layer_0/attn/qkv_einsum", 4)
    ffw = shape("layer_0/mlp2/linear" if "layer_0/mlp2/linear" in tower else "layer_0/mlp/linear", 2)[0]
    return (
        f"a {_generation(tower)} of {layers} layers, width {width}, {heads} heads of {size}, "
        f"feed-forward {ffw}, vocabulary {vocabulary}"
    )


def _generation(tower: Mapping[str, StoredArray]) -> str:
    for name, generation in (
        ("skip_scale", "Gemma 4"),
        ("attn/_query_norm/scale", "Gemma 3"),
        ("post_ffw_norm/scale", "Gemma 2"),
    ):
        if f"layer_0/{name}" in tower:
            return generation
    return "Gemma 1"


def _expected(config: ModelConfig, naming: GemmaNaming) -> dict[str, tuple[int, ...]]:
    paths = (path for path, _ in walk(abstract(config)))
    return {part.name: part.shape for path in paths for part in naming(config, path)}


def _unused(config: ModelConfig, expected: Mapping[str, object], tower: Mapping[str, StoredArray]) -> list[str]:
    """Return the tower's arrays that have no use, without the unused KV projections of layers that share KV."""
    kept = {
        f"layer_{index}/{name}"
        for index, layer in enumerate(config.layers)
        if not layer.owns_kv
        for name in _ATTENTION_OF_SHARED_KV
    }
    return sorted(tower.keys() - expected.keys() - kept)
