"""Serve weights of Google's own `gemma` library: here a tiny tree of random ones, named as the library names them.

    python examples/serve_official_weights.py

With the library installed, the model and its tree come from there, and all else stays as it is:

    from gemma import gm
    model, tree = gm.nn.Gemma3_1B(), gm.ckpts.load_params(gm.ckpts.CheckpointPath.GEMMA3_1B_IT)
    served = from_gemma(model, tree, tokenizer="./folder-with-tokenizer.model")
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax import UnsupportedModelError, from_gemma
from langchain_gemma_jax.models.gemma.forward import forward, logits
from langchain_gemma_jax.models.seams.kv_cache import allocate

WIDTH, HEADS, HEAD_SIZE, FFW, VOCABULARY = 32, 4, 8, 64, 200
LAYERS = ["LOCAL_SLIDING", "LOCAL_SLIDING", "GLOBAL"]


class Gemma3_Tiny:  # noqa: N801  as the library spells it
    """The fields of a model's configuration that from_gemma reads."""

    config = SimpleNamespace(
        num_embed=VOCABULARY,
        embed_dim=WIDTH,
        hidden_dim=FFW,
        num_heads=HEADS,
        num_kv_heads=1,
        head_dim=HEAD_SIZE,
        final_logit_softcap=None,
        attn_logits_soft_cap=None,
        use_post_attn_norm=True,
        use_post_ffw_norm=True,
        use_qk_norm=True,
        attention_types=[SimpleNamespace(name=name) for name in LAYERS],
        sliding_window_size=8,
        local_base_frequency=10_000,
        global_base_frequency=1_000_000,
        local_scale_factor=1.0,
        global_scale_factor=1.0,
        query_pre_attn_scalar=lambda: HEAD_SIZE**-0.5,
    )


def random_tree() -> dict[str, Any]:
    """The parameters, nested as ``model.init`` nests them."""
    chance = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return chance.normal(0, WIDTH**-0.5, shape).astype(np.float32)

    def scale(size: int) -> dict[str, np.ndarray]:
        return {"scale": np.zeros(size, np.float32)}

    layer_norms = ("pre_attention_norm", "post_attention_norm", "pre_ffw_norm", "post_ffw_norm")
    tree: dict[str, Any] = {
        "embedder": {"input_embedding": weights(VOCABULARY, WIDTH)},
        "final_norm": scale(WIDTH),
    }
    for index in range(len(LAYERS)):
        tree[f"layer_{index}"] = {
            "attn": {
                "q_einsum": {"w": weights(HEADS, WIDTH, HEAD_SIZE)},
                "kv_einsum": {"w": weights(2, 1, WIDTH, HEAD_SIZE)},
                "attn_vec_einsum": {"w": weights(HEADS, HEAD_SIZE, WIDTH)},
                "_query_norm": scale(HEAD_SIZE),
                "_key_norm": scale(HEAD_SIZE),
            },
            "mlp": {"gating_einsum": weights(2, FFW, WIDTH), "linear": weights(FFW, WIDTH)},
            **{name: scale(WIDTH) for name in layer_norms},
        }
    return tree


def main() -> None:
    """Serve the tree, let it say a few tokens; then try one with adapters."""
    tree = random_tree()
    with from_gemma(Gemma3_Tiny(), {"params": tree}) as model:
        print(f"{model.name}: a {model.config.generation} of {len(model.config.layers)} layers, {model.nbytes:,} bytes")

        read = jax.jit(forward, static_argnames=("config", "recipe"))
        tokens, cache = [2, 17, 42], allocate(model.config.cache_layout, rows=1, capacity=32, dtype="float32")
        fed = 0
        while len(tokens) < 12:
            new = jnp.asarray([tokens[fed:]], jnp.int32)
            hidden, cache = read(
                model.params, model.config, model.recipe, new, jnp.array([fed]), jnp.array([new.shape[1]]), cache
            )
            fed = len(tokens)
            tokens.append(int(logits(model.params, model.config, model.recipe, hidden[0, -1]).argmax()))
        print("greedy tokens:", *tokens)

    tree["layer_0"]["attn"]["q_einsum"]["lora"] = {"a": np.ones((HEADS, WIDTH, 2), np.float32)}
    try:
        from_gemma(Gemma3_Tiny(), tree)
    except UnsupportedModelError as error:
        print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
