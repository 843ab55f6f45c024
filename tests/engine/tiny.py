"""Tiny models for tests of the engine, and what they say without one."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.conversations.kv_store import KvStore
from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, PerLayerInputConfig, Rope
from langchain_gemma_jax.models.gemma.forward import forward, logits
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.recipes import AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams import kv_cache

CONTEXT = 128
WINDOW = 8
LADDERS = Ladders(chunks=(4, 16, 32), capacities=(32, CONTEXT), rows=(1, 8))
ONE_SIZE = Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1,))  # little to compile
BATCH = Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1, 8))
FIRST, LAST = 4, 286  # ids that are text: bytes, the space, capital letters
TIE = 1e-3  # two scores that are no further apart count as equal: rounding decides, and either token is right
ROUNDED_TIE = 0.05  # the same where keys and values are rounded: a last bit decides between two codes


def _layer(window: int | None = None, **changes: object) -> LayerConfig:
    values: dict[str, object] = {"kv_heads": 2, "head_dim": 8, "ffw_width": 32, "rope": Rope(10_000.0)}
    return LayerConfig(**(values | {"window": window} | changes))  # type: ignore[arg-type]


def _config(*layers: LayerConfig, **changes: object) -> ModelConfig:
    return ModelConfig(
        generation="gemma3",
        vocab_size=320,
        width=16,
        heads=4,
        layers=layers,
        max_context=CONTEXT,
        attention_scale=8**-0.5,
        post_norms=True,
        qk_norm=True,
    ).replace(**changes)


CONFIGS = {
    "local and global": _config(_layer(WINDOW), _layer()),
    "all global": _config(_layer(), _layer()),
    "shared KV": _config(
        _layer(WINDOW),
        _layer(head_dim=16),
        _layer(WINDOW, kv_from=0),
        _layer(head_dim=16, kv_from=1),
        generation="gemma4",
        v_norm=True,
        norm_offset=0.0,
        layer_scale=True,
        per_layer_input=PerLayerInputConfig(width=5, vocab_size=320),
    ),
    "a wide window": _config(_layer(40), _layer()),  # rings of 56 slots, fewer in the smallest cache
    "by kernels": _config(_layer(WINDOW, head_dim=32), _layer(head_dim=32)),
}
CONFIGS["rounded"] = CONFIGS["shared KV"]
CONFIGS["rounded by kernels"] = CONFIGS["by kernels"]
_KERNELS = Recipe("float32", attention=AttentionForm.KERNEL, between=BetweenForm.KERNEL)
RECIPES = {
    "by kernels": _KERNELS,
    "rounded": Recipe("float32", cache_dtype="int8"),
    "rounded by kernels": replace(_KERNELS, cache_dtype="int8"),
}


@dataclass
class Cold:
    """A model's answers to a whole context at once, without an engine, a kept cache or a chunk.

    A completion is checked by reading prompt and answer in one go: each token of the answer has to be the best one
    behind those before it. That is what a greedy cold run would have made, token by token.
    """

    model: Model
    ties: int = 0  # places where the two best scores were as good as equal
    checked: int = 0
    _waiting: list[tuple[list[int], Completion, str]] = field(default_factory=list)

    ROWS = 16

    def __post_init__(self) -> None:
        config, device = self.model.config, self.model.device
        # By products, whatever the model does.
        recipe = replace(self.model.recipe, attention=AttentionForm.PRODUCTS, between=BetweenForm.XLA)
        shape = (self.ROWS, config.max_context)

        def read(params: object, tokens: jax.Array, count: jax.Array) -> jax.Array:
            cache = kv_cache.allocate(recipe.kept(config.cache_layout), self.ROWS, shape[1], "float32")
            start = jnp.zeros(self.ROWS, jnp.int32)
            hidden, _ = forward(params, config, recipe, tokens, start, count, cache)  # type: ignore[arg-type]
            return logits(params, config, recipe, hidden)  # type: ignore[arg-type]

        self._read = jax.jit(read)
        self._valid = min(self.model.tokenizer.vocab_size, config.vocab_size)
        self._device, self._tie = device, ROUNDED_TIE if recipe.rounds_cache else TIE

    def scores(self, contexts: Sequence[Sequence[int]]) -> np.ndarray:
        """``[context, token, vocab]``: behind each token of up to ``ROWS`` contexts."""
        tokens = np.zeros((self.ROWS, self.model.config.max_context), np.int32)
        count = np.ones(self.ROWS, np.int32)
        for row, context in enumerate(contexts):
            tokens[row, : len(context)], count[row] = context, len(context)
        put = jax.device_put((tokens, count), self._device)
        return np.asarray(jax.device_get(self._read(self.model.params, *put)))[: len(contexts)]

    def expect(self, prompt: Sequence[int], completion: Completion, what: str = "") -> None:
        """Have a greedy completion checked, now or in ``check``."""
        self._waiting.append((list(prompt), completion, what))
        if len(self._waiting) == self.ROWS:
            self.check()

    def check(self) -> None:
        """Check what waits."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        found = self.scores([[*prompt, *completion.ids] for prompt, completion, _ in waiting])
        for (prompt, completion, what), scores in zip(waiting, found, strict=True):
            self._check_one(prompt, completion, what, scores)

    def _check_one(self, prompt: list[int], completion: Completion, what: str, scores: np.ndarray) -> None:
        for index, token in enumerate(completion.ids):
            row = scores[len(prompt) + index - 1]
            valid = row[: self._valid]
            best = int(np.argmax(valid))
            self.checked += 1
            self.ties += bool(np.partition(valid, -2)[-2] >= valid[best] - self._tie)
            assert valid[token] >= valid[best] - self._tie, (
                f"{what}: token {index} behind {len(prompt)} is {token} ({valid[token]}), cold it is {best} "
                f"({valid[best]})"
            )
            if completion.logprobs:
                shifted = row - row.max()
                wanted = shifted[token] - np.log(np.exp(shifted).sum())
                assert abs(completion.logprobs[index].logprob - wanted) < self._tie, f"{what}: logprob of token {index}"


def text(rng: random.Random, count: int) -> list[int]:
    """Random ids."""
    return [rng.randint(FIRST, LAST) for _ in range(count)]


def settle(engine: Engine) -> None:
    """Wait until the engine's books are up to date: it reports a completion before it looks at its memory.

    Its background threads end by themselves, but after the last of what they do.
    """
    engine._owner.call(lambda: None)
    while threads := [each for each in threading.enumerate() if each.name == "gemma-jax-background"]:
        for thread in threads:
            if thread.is_alive():  # one that is only just being started cannot be joined yet
                thread.join()


def kv_store_of(engine: Engine) -> KvStore:
    """The conversations of an engine's one model: for a look at them while nothing runs."""
    (runner,) = engine._owner.models.runners.values()
    return runner.kv_store
