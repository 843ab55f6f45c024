"""A fresh process on its way to a first token, which says when it got where: for ``cold_start.py``.

    python benchmarks/start/cold_process.py floor
    python benchmarks/start/cold_process.py ours FOLDER DTYPE TOKENS
    python benchmarks/start/cold_process.py plain FOLDER DTYPE TOKENS

``plain`` is what one would write with JAX and nothing else: each length is a shape, and nothing is kept.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

TOKENS = 16  # of the answer
Mark = Callable[[str], None]


def floor(mark: Mark) -> None:
    """What nobody who uses JAX and LangChain can do without."""
    import jax  # noqa: F401
    import langchain_core  # noqa: F401

    mark("import")


def ours(mark: Mark, folder: str, dtype: str, tokens: str) -> None:
    """This package: everything by default."""
    import jax  # noqa: F401
    import langchain_core  # noqa: F401

    from langchain_gemma_jax import Sampling, engine

    running = engine()
    mark("import")
    served = running.load(folder, dtype=dtype)
    mark("weights")
    pieces = iter(running.submit(served, prompt(int(tokens)), Sampling(max_tokens=TOKENS, ignore_eos=True)))
    next(pieces)
    mark("first token")
    for _ in pieces:
        pass
    mark("answer")


def plain(mark: Mark, folder: str, dtype: str, tokens: str) -> None:
    """The same model and weights, read by the same code, run as the manual of JAX has it."""
    import jax
    import jax.numpy as jnp
    import langchain_core  # noqa: F401
    import numpy as np

    from langchain_gemma_jax import load_model
    from langchain_gemma_jax.models.gemma.forward import Params, forward, logits
    from langchain_gemma_jax.models.seams import kv_cache

    mark("import")
    model = load_model(folder, dtype=dtype, progress=False)
    config, recipe = model.config, model.recipe
    mark("weights")

    @jax.jit
    def step(
        params: Params, tokens: jax.Array, start: jax.Array, cache: kv_cache.KVCache
    ) -> tuple[jax.Array, kv_cache.KVCache]:
        count = jnp.full(1, tokens.shape[1], jnp.int32)
        hidden, cache = forward(params, config, recipe, tokens, start, count, cache, keep=count - 1)
        return jnp.argmax(logits(params, config, recipe, hidden[:, 0]), axis=-1), cache

    ids = prompt(int(tokens))
    cache = kv_cache.allocate(config.cache_layout, 1, len(ids) + TOKENS, dtype, model.device)
    token, cache = step(model.params, np.array([ids], np.int32), np.zeros(1, np.int32), cache)
    int(token[0])
    mark("first token")
    for end in range(len(ids), len(ids) + TOKENS - 1):
        token, cache = step(model.params, token[:, None], np.array([end], np.int32), cache)
        int(token[0])
    mark("answer")


def prompt(tokens: int) -> list[int]:
    """Ids that every vocabulary has."""
    return [2, *(10 + index % 200 for index in range(tokens - 1))]


def main(what: str, *arguments: str) -> None:
    """Do it; print the seconds of the clock that all processes share."""
    marks: dict[str, float] = {}

    def mark(name: str) -> None:
        marks[name] = time.clock_gettime(time.CLOCK_MONOTONIC)

    works: dict[str, Callable[..., None]] = {"floor": floor, "ours": ours, "plain": plain}
    works[what](mark, *arguments)
    print(json.dumps(marks), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
