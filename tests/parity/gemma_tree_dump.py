"""The official library's results, for tiny models of every architecture that it has.

    python tests/parity/gemma_tree_dump.py OUT_FOLDER [--seeds N] [--only NAME]

Needs an environment with the `gemma` package (Python 3.12 or newer), and this repository to run in. For each
architecture and seed it writes a folder ``OUT_FOLDER/<architecture>-<seed>`` with

    tree.npz        the parameters, float32, by their path in the library's nested tree: "layer_0/attn/q_einsum/w"
    config.json     the fields of our ModelConfig, as read from the library's model
    reference.npz   tokens [40], logits [40, vocabulary], continuation [16]: the tokens that greedy decoding adds

The prompt crosses the sliding window of 8 five times. The continuation is computed by full forwards, without a cache.
Before all that it compares the sizes that the library publishes with the catalog, and stops at a difference.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from gemma import gm

sys.path.insert(0, str(Path(__file__).parents[2]))

from langchain_gemma_jax.models.checkpoint.official.gemma_config import read_architecture, same_architecture
from langchain_gemma_jax.models.configuration.catalog import known
from langchain_gemma_jax.models.configuration.model_config import ModelConfig

PROMPT, CONTINUATION, VOCABULARY = 40, 16, 96

SMALL = {
    "num_embed": VOCABULARY,
    "embed_dim": 48,
    "hidden_dim": 80,
    "num_heads": 4,
    "num_kv_heads": 2,
    "head_dim": 16,
    "sliding_window_size": 8,
}
SMALL_GEMMA1 = {
    "final_logit_softcap": None,
    "use_post_attn_norm": False,
    "use_post_ffw_norm": False,
    "attention_types": (gm.nn.AttentionType.GLOBAL,) * 3,
}


def models() -> dict[str, object]:
    """Every architecture, shrunk; what makes it itself stays as the library has it."""

    def gemma1(**changes: object) -> object:
        # The library has no classes for Gemma 1 any more. Its Transformer still computes them.
        config = gm.nn.config.TransformerConfig(**SMALL | SMALL_GEMMA1 | changes)
        return gm.nn.Transformer(config=config, dtype=jnp.float32, tokens="")

    def shrink(kind: type, layers: int, **changes: object) -> object:
        changes |= {"attention_types": kind.config.attention_types[:layers], "vision_encoder": None}
        return kind(config=dataclasses.replace(kind.config, **SMALL | changes), dtype=jnp.float32)

    small_gemma4 = {"global_key_size": 32, "audio_encoder": None}
    return {
        "gemma-2b": gemma1(num_kv_heads=1),
        "gemma-7b": gemma1(num_kv_heads=4),
        "gemma2-2b": shrink(gm.nn.Gemma2_2B, 4),
        "gemma2-27b": shrink(gm.nn.Gemma2_27B, 4, num_heads=6),
        "gemma3-1b": shrink(gm.nn.Gemma3_1B, 7, num_kv_heads=1),
        "gemma3-4b": shrink(gm.nn.Gemma3_4B, 6),
        "gemma4-e2b": shrink(
            gm.nn.Gemma4_E2B,
            10,
            num_kv_heads=1,
            per_layer_input_dim=8,
            override_kv_shared_ffw_hidden=160,
            kv_cache_sharing_config=_half_shared(gm.nn.Gemma4_E2B),
            **small_gemma4,
        ),
        "gemma4-e4b": shrink(
            gm.nn.Gemma4_E4B,
            12,
            per_layer_input_dim=8,
            kv_cache_sharing_config=_half_shared(gm.nn.Gemma4_E4B),
            **small_gemma4,
        ),
        "gemma4-31b": shrink(gm.nn.Gemma4_31B, 6, num_global_kv_heads=1, **small_gemma4),
        "gemma4-26b-a4b": shrink(
            gm.nn.Gemma4_26B_A4B,
            6,
            num_global_kv_heads=1,
            num_experts=5,
            top_k_experts=2,
            expert_dim=24,
            moe_dense_hidden_dim=40,
            **small_gemma4,
        ),
    }


def _half_shared(kind: type) -> object:
    return dataclasses.replace(kind.config.kv_cache_sharing_config, frac_shared_layers=0.5)


def random_tree(
    shapes: Mapping[str, object], random: np.random.Generator, config: ModelConfig, path: tuple[str, ...] = ()
) -> dict[str, object]:
    """Weights that keep activations, and the logits of attention, near 1, and no two norm scales the same."""
    tree = {}
    for name, value in sorted(shapes.items()):
        if isinstance(value, Mapping):
            tree[name] = random_tree(value, random, config, (*path, name))
        elif len(value.shape) == 1:
            center = 1.0 - config.norm_offset if name == "scale" else 1.0
            tree[name] = (center + 0.2 * random.normal(size=value.shape)).astype(np.float32)
        else:
            tree[name] = (random.normal(size=value.shape) * config.width**-0.5).astype(np.float32)
    if path[-1:] == ("query_norm",):  # Gemma 4 has no other scale in attention
        tree["scale"] *= np.float32(tree["scale"].size ** -0.5)
    if config.moe and path[-1:] == ("pre_ffw_norm",):
        # Up to 4.0.1 the library's router reads the experts' normed input, later versions the residual as Hugging
        # Face's does. A norm with one scale for all, which the router's own norm takes away, is the same to both.
        tree["scale"] = np.full_like(tree["scale"], 1.3)
    return tree


def flatten(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}/")
        else:
            yield prefix + name, value


def forward(model: object) -> Callable[[object, np.ndarray], jax.Array]:
    """All logits of one padded row. Explicit positions and mask: the library would hide tokens that equal its pad."""
    length = PROMPT + CONTINUATION
    positions = jnp.arange(length)[None]
    causal = jnp.tril(jnp.ones((1, length, length), bool))

    @jax.jit
    def logits(tree: object, tokens: jax.Array) -> jax.Array:
        return model.apply({"params": tree}, tokens, positions=positions, attention_mask=causal).logits[0]

    return logits


def dump(name: str, model: object, seeds: int, folder: Path) -> None:
    length = PROMPT + CONTINUATION
    config = read_architecture(model).replace(max_context=length)
    shapes = jax.eval_shape(model.init, jax.random.key(0), jnp.ones((1, length), jnp.int32))["params"]
    run = forward(model)
    for seed in range(seeds):
        random = np.random.default_rng([seed, *name.encode()])
        tree = random_tree(shapes, random, config)
        tokens = np.zeros((1, length), np.int32)
        tokens[0, :PROMPT] = random.integers(3, VOCABULARY, PROMPT)
        for end in range(PROMPT, length):
            logits = np.asarray(run(tree, tokens))
            tokens[0, end] = logits[end - 1].argmax()
        out = folder / f"{name}-{seed}"
        out.mkdir(parents=True, exist_ok=True)
        np.savez(out / "tree.npz", **dict(flatten(tree)))
        np.savez(
            out / "reference.npz", tokens=tokens[0, :PROMPT], logits=logits[:PROMPT], continuation=tokens[0, PROMPT:]
        )
        (out / "config.json").write_text(json.dumps(dataclasses.asdict(config), indent=1))
    print(f"{name}: {seeds} seed(s), logits spread {float(np.std(logits[:PROMPT])):.3f}", flush=True)  # noqa: T201  a script's progress


def check_sizes() -> None:
    """Compare each model that the library publishes with this package's catalog, which has Hugging Face's sizes."""
    for name in filter(re.compile(r"Gemma\d_").match, dir(gm.nn)):
        architecture = read_architecture(getattr(gm.nn, name)())
        if not any(same_architecture(size, architecture) for size in known().values()):
            raise SystemExit(f"{name} of the library is like no model of the catalog: {architecture}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Dump trees and logits of the official Gemma library.")
    parser.add_argument("folder", type=Path, help="where to write")
    parser.add_argument("--seeds", type=int, default=1, help="models of each architecture (1)")
    parser.add_argument("--only", help="one architecture")
    options = parser.parse_args()
    check_sizes()
    chosen = {name: model for name, model in models().items() if options.only in (None, name)}
    if not chosen:
        parser.error(f"--only: expected one of {', '.join(models())}, found {options.only!r}")
    for name, model in chosen.items():
        dump(name, model, options.seeds, options.folder)


if __name__ == "__main__":
    main()
