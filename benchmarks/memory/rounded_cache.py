"""Keys and values in eight bits beside the model's dtype: what they cost in quality, and what they save. A gate.

    python benchmarks/memory/rounded_cache.py                          # the files of build/real that are there
    python benchmarks/memory/rounded_cache.py --files a.gguf b.gguf    # these
    python benchmarks/memory/rounded_cache.py --shapes gemma-3-1b gemma-3-4b gemma-4-e2b    # random weights too
    python benchmarks/memory/rounded_cache.py --tokens 8192 --quick    # less of everything

Both caches belong to one model in one process and take turns, so that a busy machine slows both.

* KL divergence, and how often the most likely token is the same, at each token of a long chat. The bar: 0.01, and 99 %.
  Beside it, what a cache in bfloat16 comes to: any change of a last bit is amplified where activations are rounded, so
  no cache can be nearer than that. ``--activations float32`` shows what is due to the cache alone.
* Bytes of a conversation by the engine's own books. The bar: 0.62 x.
* A step behind so many tokens, made-up keys and values in the pages. The bar: 1.25 x as fast.
* Ten digits that stand somewhere in a long text and are asked for, at ten depths: found as often. For files alone.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.machine import Others, machine
from benchmarks.work.bare_programs import bare_shape, bare_tables, greedy_rows
from langchain_gemma_jax.engine.api.model_estimate import bytes_of_conversation
from langchain_gemma_jax.engine.device.page_pool import KvPool
from langchain_gemma_jax.engine.device.programs import Programs, Shape
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import Recipe, choose_recipe
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.kv_cache import KVCache, LayerKV, allocate
from langchain_gemma_jax.models.seams.kv_rounding import rounded
from langchain_gemma_jax.models.seams.placement import Placement, placement_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "real"
PAGES = ("tutorial", "memory", "security", "choosing", "engine", "langchain", "compiling", "runbooks")  # of docs/
CHUNK = 64  # tokens that are scored at once
BARS = {"kl": 0.01, "same": 0.99, "bytes": 0.62, "step": 1.25}
DEPTHS = 10


@dataclass(frozen=True)
class Pair:
    """A model, and its recipes without rounding and with it."""

    name: str
    architecture: Architecture
    params: Any
    plain: Recipe
    placement: Placement

    @property
    def recipes(self) -> tuple[Recipe, Recipe]:
        """Without rounding, and with it."""
        return self.plain, replace(self.plain, cache_dtype="int8")

    @property
    def coarse(self) -> tuple[Recipe, Recipe]:
        """Without rounding, and with keys and values in bfloat16: how near any other cache can be."""
        return self.plain, replace(self.plain, cache_dtype="bfloat16")


@dataclass(frozen=True)
class Quality:
    """The change of predictions."""

    kl: float  # mean divergence from those without rounding, in nats
    worst: float  # the largest of one token
    same: float  # share of places with the same most likely token
    places: int


def of_model(model: Model) -> Pair:
    """Return the pair of a loaded model."""
    return Pair(model.name, model.architecture, model.params, model.recipe, model.placement)


def of_shape(size: str, dtype: str) -> Pair:
    """Return the pair of a published size with random weights."""
    config, where = published(size), placement_of(None)
    recipe = choose_recipe(dtype)
    params = where.put(random_params(config, recipe), recipe.abstract(config))
    return Pair(f"{size}, random", Gemma(config), params, recipe, where)


def quality(pair: Pair, ids: Sequence[int], recipes: tuple[Recipe, Recipe]) -> Quality:
    """Read a text with both caches, and compare what is predicted behind each token."""
    room = -(-len(ids) // CHUNK) * CHUNK
    layout, device = pair.architecture.cache_layout, pair.placement.devices[0]
    caches = tuple(allocate(each.kept(layout), 1, room, each.kv_dtype, device) for each in recipes)
    program = jax.jit(partial(_read_both, pair.architecture, recipes), donate_argnums=4)
    divergences, same = [], []
    for start in range(0, len(ids), CHUNK):
        some = ids[start : start + CHUNK]
        tokens = np.zeros((1, CHUNK), np.int32)
        tokens[0, : len(some)] = some
        numbers = pair.placement.put((tokens, np.array([start], np.int32), np.array([len(some)], np.int32)))
        found, alike, caches = program(pair.params, *numbers, caches)
        divergences += np.asarray(found)[: len(some)].tolist()
        same += np.asarray(alike)[: len(some)].tolist()
    return Quality(float(np.mean(divergences)), max(divergences), float(np.mean(same)), len(ids))


def _read_both(
    kind: Architecture,
    recipes: tuple[Recipe, Recipe],
    params: Any,
    tokens: jax.Array,
    start: jax.Array,
    count: jax.Array,
    caches: tuple[KVCache, KVCache],
) -> tuple[jax.Array, jax.Array, tuple[KVCache, KVCache]]:
    scores, after = [], []
    for recipe, before in zip(recipes, caches, strict=True):
        hidden, cache = kind.forward(params, recipe, tokens, start, count, before, None)
        scores.append(jax.nn.log_softmax(kind.logits(params, recipe, hidden)[0].astype(jnp.float32)))
        after.append(cache)
    plain, ours = scores
    divergence = jnp.sum(jnp.exp(plain) * (plain - ours), axis=-1)
    return divergence, jnp.argmax(plain, axis=-1) == jnp.argmax(ours, axis=-1), (after[0], after[1])


def shapes_of(pair: Pair, tokens: int) -> tuple[Shape, Shape]:
    """Return what programs for a conversation of so many tokens are traced with."""
    plain, ours = (bare_shape(pair.architecture, each, tokens + 64, chunk=512) for each in pair.recipes)
    return plain, ours


def share_of_bytes(pair: Pair, tokens: int) -> float:
    """Return the bytes of a conversation, over those without rounding."""
    plain, ours = (bytes_of_conversation(shape, tokens) for shape in shapes_of(pair, tokens))
    return ours / plain


def steps(pair: Pair, behind: int, rounds: int) -> list[float]:
    """Return the median seconds of a step behind so many tokens, without rounding and with it, in turns."""
    runs = [_step(pair, shape, behind) for shape in shapes_of(pair, behind)]
    times: list[list[float]] = [[], []]
    for _ in range(rounds + 1):
        for run, each in zip(runs, times, strict=True):
            each.append(run())
    return [median(each[1:]) for each in times]


def _step(pair: Pair, shape: Shape, behind: int) -> Callable[[], float]:
    programs, where = Programs(shape, pair.placement), pair.placement
    put = where.put
    given = put((np.array([5], np.int32), np.array([behind], np.int32), np.ones(1, np.int32)))
    tables, greedy = put(bare_tables(shape)), put(greedy_rows(shape.architecture.vocab_size))
    state = [jax.jit(_filled, donate_argnums=0)(programs.empty()())]

    def run() -> float:
        began = time.perf_counter()
        picked, _, state[0] = programs.step(pair.params, *given, tables, state[0], greedy)
        jax.block_until_ready(picked)
        return time.perf_counter() - began

    return run


def _filled(pool: KvPool) -> KvPool:
    """Return a pool with made-up keys and values in all its pages."""

    def some(array: jax.Array, layer: LayerKV) -> jax.Array:
        heads = array.shape if not layer.rounded else (*array.shape[:-1], array.shape[-1] - 4)
        one = jax.random.normal(jax.random.key(0), heads[1:], jnp.float32) * 0.5  # the same in each page
        page = rounded(one) if layer.rounded else one.astype(array.dtype)
        return jnp.broadcast_to(page, array.shape)

    layers = tuple(layer and LayerKV(some(layer.keys, layer), some(layer.values, layer)) for layer in pool.layers)
    return KvPool(layers, jnp.zeros_like(pool.ids))


def chat(encode: Callable[[str], list[int]], bos: int, most: int) -> list[int]:
    """Return a long conversation in Gemma's turns, about the pages of docs/: questions, and long answers."""
    ids = [bos]
    for name in PAGES:
        parts = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split("\n\n")
        for index in range(0, len(parts) - 1, 2):
            ids += encode(f"<start_of_turn>user\nAbout {name}: {parts[index]}<end_of_turn>\n")
            ids += encode(f"<start_of_turn>model\n{parts[index + 1]}<end_of_turn>\n")
    return ids[:most]


def needles(model: Model, tokens: int) -> tuple[int, int]:
    """Return how often ten digits in a long text were found, without rounding and with it."""
    from langchain_gemma_jax import Sampling, configure, engine

    configure(drafts=False)
    running, encode = engine(), model.tokenizer.encode_scaffold
    words = chat(encode, model.tokenizer.bos_id, 2 * tokens)[1:]
    found = [0, 0]
    served = [
        running.serve(replace(model, recipe=recipe, name=f"{model.name} {index}"))
        for index, recipe in enumerate(of_model(model).recipes)
    ]
    for depth in range(DEPTHS):
        digits = str(random.Random(depth).randrange(10**9, 10**10))
        at = depth * tokens // DEPTHS
        said = "The secret number is "  # a base model goes on with what was said before, rather than answer a question
        prompt = [
            model.tokenizer.bos_id,
            *words[:at],
            *encode(f"\n\n{said}{digits}.\n\n"),
            *words[at:tokens],
            *encode(f"\n\nAs was said above: {said[:-1]}"),
        ]
        for index, each in enumerate(served):
            answer = running.submit(each, prompt, Sampling(temperature=0.0, max_tokens=24), scope=str(depth)).result()
            found[index] += digits in answer.text
    return found[0], found[1]


def report(pair: Pair, ids: Sequence[int], options: argparse.Namespace) -> dict[str, float]:
    """Measure one pair, and print what came of it."""
    print(f"\n{pair.name}: {pair.plain.attention}, keys and values in {pair.plain.kv_dtype}", flush=True)
    found = quality(pair, ids, pair.recipes)
    for name, each in (("rounded", found), ("bfloat16", quality(pair, ids, pair.coarse))):
        print(
            f"  {name}: KL {each.kl:.5f} (worst {each.worst:.3f}), same token {each.same:.2%} of {each.places} places"
        )
    share = share_of_bytes(pair, options.tokens)
    print(f"  bytes of {options.tokens:,} tokens: {share:.3f} x")
    plain, ours = steps(pair, options.tokens, options.rounds)
    print(
        f"  a step behind {options.tokens:,}: {plain * 1e3:.1f} ms, rounded {ours * 1e3:.1f} ms: {plain / ours:.2f} x"
    )
    values = {"kl": found.kl, "same": found.same, "bytes": share, "step": plain / ours}
    missed = [
        name for name, bar in BARS.items() if (values[name] > bar if name in {"kl", "bytes"} else values[name] < bar)
    ]
    print(f"  {'passes' if not missed else 'misses: ' + ', '.join(missed)}", flush=True)
    return values


def main() -> None:
    """Measure all that was asked for."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--files", nargs="*", type=Path, help="GGUF files; by default those of build/real")
    arguments.add_argument("--shapes", nargs="*", default=[], help="published sizes, with random weights")
    arguments.add_argument("--activations", choices=("float32", "int8"), help="of the files; by default the fastest")
    arguments.add_argument("--dtype", default="bfloat16", help="of the shapes' weights")
    arguments.add_argument("--tokens", type=int, default=32768, help="of the conversation that a step is behind")
    arguments.add_argument("--text", type=int, default=4096, help="tokens of the chat that predictions are compared on")
    arguments.add_argument("--needle", type=int, default=3000, help="tokens of the text with the digits; 0: none")
    arguments.add_argument("--rounds", type=int, default=30)
    arguments.add_argument("--quick", action="store_true", help="a tenth of the text, few rounds, no digits")
    options = arguments.parse_args()
    if options.quick:
        options.text, options.rounds, options.needle = options.text // 10, 8, 0
    files = sorted(FOLDER.glob("*.gguf")) if options.files is None else options.files
    others = Others()
    print(f"{machine()['processor']}, {machine()['cores']} cores, jax {jax.__version__}")
    for path in files:
        with load(path, progress=False, activations=options.activations) as model:
            ids = chat(model.tokenizer.encode_scaffold, model.tokenizer.bos_id, options.text)
            report(of_model(model), ids, options)
            if options.needle:
                plain, ours = needles(model, options.needle)
                print(
                    f"  ten digits in {options.needle:,} tokens: found {plain} of {DEPTHS}, rounded {ours}", flush=True
                )
    for size in options.shapes:
        pair = of_shape(size, options.dtype)
        ids = np.random.default_rng(0).integers(1000, 200_000, min(options.text, 512)).tolist()
        report(pair, ids, options)
    print(f"\nOthers used {others.cores_used() or 0:.2f} cores meanwhile.")


if __name__ == "__main__":
    main()
