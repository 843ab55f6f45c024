"""A larger model that starts out as a smaller one: it gives the same answers, with room for better ones.

Everything is twice as wide, and layers are added that at first add nothing. So the larger one does not
learn again what the smaller one knows, which would take it five times as long.
"""

from __future__ import annotations

from typing import cast

import jax
import numpy as np

from langchain_gemma_jax.models.configuration.abstract import Path, abstract, walk
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.seams.params import Params, assemble

_APART = 0.5  # how far two copies of a weight are drawn apart, in standard deviations
_POST_NORMS = ("post_attn_norm", "post_ffw_norm")


def grown(params: Params, small: ModelConfig, large: ModelConfig, rng: np.random.Generator) -> Params:
    """The parameters of ``large``, which foretell what those of ``small`` do.

    Raises:
        ValueError: ``large`` is not twice as wide in every respect, or its layers are of other kinds.
    """
    _check(small, large)
    layers = cast("list[dict[str, np.ndarray]]", params["layers"])
    before = _copied(len(small.layers), len(large.layers))
    # Two tokens' embeddings are both of the input, which is scaled by the root of the width, and of the output.
    embed, norm = np.asarray(params["embed"]), np.asarray(params["final_norm"])
    made: list[tuple[Path, np.ndarray]] = []
    for path, _ in walk(abstract(large)):
        match path:
            case ("layers", int(index), str(name)):
                source, new = before[index]
                array = _widened(name, np.asarray(layers[source][name]), rng)
                made.append((path, np.zeros_like(array) if new and name in _POST_NORMS else array))
            case ("embed",):
                made.append((path, np.concatenate([embed, embed], axis=1) / np.float32(2**0.5)))
            case _:
                made.append((path, np.concatenate([norm, norm]) / np.float32(2**0.5)))
    return assemble(cast("list[tuple[Path, jax.Array]]", made))


def _widened(name: str, array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if name in {"q_norm", "k_norm"}:  # of one head, and heads stay as they are
        return array
    if array.ndim == 1:
        return np.concatenate([array, array])
    # Inputs come twice, so what one copy of a weight has more, the other has less.
    blocks = np.split(array, _parts(name, array), axis=0)
    rows = np.concatenate([part for block in blocks for part in (block, block)])
    apart = rng.standard_normal(rows.shape, np.float32) * np.float32(_APART * float(array.std()))
    return np.concatenate([rows / 2 + apart, rows / 2 - apart], axis=1)


def _parts(name: str, array: np.ndarray) -> list[int]:
    """Where, in a matrix's outputs, queries end and keys, or gates and what goes up."""
    outputs = array.shape[0]
    if name == "gate_up":
        return [outputs // 2]
    return [outputs // 2, outputs * 3 // 4] if name == "qkv" else []


def _copied(small: int, large: int) -> list[tuple[int, bool]]:
    """For each layer the one that it is a copy of, and whether it is an added one. Pairs of layers stay together."""
    pairs, added = small // 2, (large - small) // 2
    after = [-(-(index + 1) * pairs // (added + 1)) - 1 for index in range(added)]
    places: list[tuple[int, bool]] = []
    for pair in range(pairs):
        places += [(2 * pair, False), (2 * pair + 1, False)]
        places += [(2 * pair, True), (2 * pair + 1, True)] * after.count(pair)
    return places


def _check(small: ModelConfig, large: ModelConfig) -> None:
    first, other = small.layers[0], large.layers[0]
    twice = [
        (small.width, large.width),
        (small.heads, large.heads),
        (first.kv_heads, other.kv_heads),
        (first.ffw_width, other.ffw_width),
    ]
    kinds = [[layer.window for layer in config.layers] for config in (small, large)]
    copied = [kinds[0][source] for source, _ in _copied(len(kinds[0]), len(kinds[1]))]
    same = (small.vocab_size, first.head_dim, small.tied_head) == (large.vocab_size, other.head_dim, large.tied_head)
    halves = small.heads == 2 * first.kv_heads
    if any(2 * one != two for one, two in twice) or not same or not halves or copied != kinds[1]:
        raise ValueError(f"expected a model twice as wide with layers of the same kinds, found {small} and {large}")
