"""Tell how often a drafter must be right to pay, on this machine: its gain by the share of guesses that are right.

    python -m benchmarks.drafts.break_even e4b
    python -m benchmarks.drafts.break_even 12b --weights int8 --tokens 96

Target and drafter have random weights in the shapes of Gemma 4's, so real guesses would be right by chance alone. The
drafter runs, and takes its time, but its guesses are replaced: by the tokens that the model is known to say, each of
them wrong with the probability that a row of the table has. Answers are compared with those without drafts, token by
token. To fit in little memory and time, the target has a part of its layers, while the drafter is whole: the last
column reckons what that comes to with all layers, from the bytes that a token reads.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median

import jax
import jax.numpy as jnp

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.draft_sources import MTP
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts
from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.engine.steps.chains import ChainOfRequest
from langchain_gemma_jax.models.configuration.config_fields import Raw
from langchain_gemma_jax.models.configuration.drafter_config import drafter_from_hf, for_target
from langchain_gemma_jax.models.configuration.embedded import embedded_folder
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.gemma.drafter import ORDER, GemmaDrafter
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.asked_storage import exact
from langchain_gemma_jax.models.loading.drafters import LoadedDrafter
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.opened_gemma import dtype_of_unpacked
from langchain_gemma_jax.models.packed.choose_forms import choose_block_forms
from langchain_gemma_jax.models.packed.quantize import quantized
from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import choose_recipe
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.weights import total_bytes
from langchain_gemma_jax.models.tokenizer import load_tokenizer

RIGHT = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
PROMPT = [2, *range(300, 364)]
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class Shape:
    """A published size with a part of its layers, and its drafter."""

    target: Raw
    drafter: Raw
    layers: int  # of the published size


def _text(kind: str, width: int, ffw: int, heads: int, kv_heads: int, layers: int, period: int, **more: object) -> Raw:
    types = [_GLOBAL if (index + 1) % period == 0 else _LOCAL for index in range(layers)]
    return {
        "model_type": kind,
        "vocab_size": 262144,
        "hidden_size": width,
        "intermediate_size": ffw,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "num_hidden_layers": layers,
        "head_dim": 256,
        "global_head_dim": 512,
        "hidden_size_per_layer_input": 0,
        "layer_types": types,
        "max_position_embeddings": 4096,
        "final_logit_softcapping": 30.0,
        **more,
    }


_12B = {"sliding_window": 1024, "attention_k_eq_v": True, "num_global_key_value_heads": 1}
SHAPES = {
    "e4b": Shape(
        _text(
            "gemma4_text", 2560, 10240, 8, 2, 14, 6, hidden_size_per_layer_input=256, num_kv_shared_layers=6,
            sliding_window=512,
        ),
        {
            "model_type": "gemma4_assistant",
            "backbone_hidden_size": 2560,
            "use_ordered_embeddings": True,
            "text_config": _text("gemma4_text", 256, 2048, 4, 2, 4, 4, sliding_window=512),
        },
        layers=42,
    ),
    "12b": Shape(
        _text("gemma4_unified_text", 3840, 15360, 16, 8, 6, 6, **_12B),
        {
            "model_type": "gemma4_unified_assistant",
            "backbone_hidden_size": 3840,
            "text_config": _text("gemma4_unified_text", 1024, 8192, 16, 8, 4, 4, **_12B),
        },
        layers=48,
    ),
}  # fmt: skip


def made(shape: Shape, weights: str) -> Model:
    """Return the model with its drafter, of random weights."""
    config = config_from_hf(shape.target, "the target")
    drafter = for_target(drafter_from_hf(shape.drafter, "the drafter"), "the drafter", config, "the target")
    storage = quantized(weights, choose_block_forms())
    recipe: Recipe = exact(replace(choose_recipe(dtype_of_unpacked(jax.default_backend())), storage=storage))
    folder, beside = embedded_folder("sprout-s"), GemmaDrafter(drafter, recipe)
    if folder is None:
        raise SystemExit("sprout-s, whose vocabulary is used, is not in this package")
    params = random_params(drafter, recipe, seed=1)
    if groups := beside.drafting.centroids:
        params[ORDER] = jnp.arange(drafter.vocab_size, dtype=jnp.int32).reshape(groups, -1)
    loaded = LoadedDrafter(beside, folder, params)
    weights_of_target = random_params(config, recipe)
    return Model(Gemma(config), weights_of_target, load_tokenizer(folder), recipe, "random", drafter=loaded)


@contextmanager
def oracle(answer: Sequence[int], right: float) -> Iterator[None]:
    """Have guesses be the answer's tokens, each wrong with a probability. The drafter runs as ever."""
    real, chance = ChainOfRequest.guess, random.Random(7)

    def guess(self: ChainOfRequest, count: int) -> tuple[int, ...]:
        real(self, count)
        at = self.request.generated
        coming = [*answer[at : at + count], *([0] * count)][:count]
        return tuple(token if chance.random() < right else token ^ 1 for token in coming)

    ChainOfRequest.guess = guess  # type: ignore[method-assign]
    try:
        yield
    finally:
        ChainOfRequest.guess = real  # type: ignore[method-assign]


def seconds_a_token(done: Completion) -> float:
    """Return the seconds of a token behind the first one."""
    return (done.timings.total_s - done.timings.first_token_s) / (done.generated_tokens - 1)


def ask(engine: Engine, served: Served, tokens: int, scope: str, *, drafts: bool) -> Completion:
    """Return an answer."""
    asked = Sampling(max_tokens=tokens, ignore_eos=True, drafts=drafts)
    return engine.submit(served, PROMPT, asked, scope=scope).result()


@dataclass(frozen=True)
class Row:
    """The answers at one share of guesses that are right."""

    right: float
    speed: float
    per_check: float  # guesses
    checks: int


def measure(engine: Engine, served: Served, right: float, tokens: int, rounds: int) -> Row:
    """Return the speed with drafts beside that without: they take turns, and the first turn is not counted.

    Raises:
        SystemExit: drafts changed an answer.
    """
    plain = ask(engine, served, tokens, f"{right}", drafts=False)
    speeds, drafted, checks = list[float](), 0, 0
    with oracle(plain.ids, right):
        for number in range(rounds + 1):
            before = engine.report()
            done = ask(engine, served, tokens, f"{right}", drafts=True)
            after = engine.report()
            again = ask(engine, served, tokens, f"{right}", drafts=False)
            if not done.ids == plain.ids == again.ids:
                raise SystemExit("the answers with drafts and without differ")
            if number:
                speeds.append(seconds_a_token(again) / seconds_a_token(done))
                drafted += done.drafted_tokens
                checks += after.steps - before.steps
    return Row(right, median(speeds), drafted / max(1, checks), checks // rounds)


def at_best(right: float, costs: RowCosts, share: float, counts: Sequence[int]) -> tuple[float, int]:
    """Return the best speed, and its number of guesses, where a chain costs ``share`` of what it does here."""
    speeds = [
        (sum(right**place for place in range(count + 1)) / (costs.of(count + 1) + share * costs.of_chain(count)), count)
        for count in counts
    ]
    return max([(1.0, 0), *speeds])


def report(shape: Shape, served: Served, costs: RowCosts, rows: Sequence[Row], counts: Sequence[int]) -> None:
    """Print the tables."""
    model = served.model
    beside, config = model.drafter, model.config
    if beside is None:
        raise TypeError("the model has no drafter")
    layers = total_bytes(model.params["layers"])
    table = total_bytes(model.params["embed"])
    here, whole = layers + table, layers * shape.layers / len(config.layers) + table
    print(f"{len(config.layers)} of {shape.layers} layers: a token reads {here / 1e9:.1f} of {whole / 1e9:.1f} GB")
    print(f"drafter: {beside.nbytes / 1e6:.0f} MB\n")
    print("| guesses | check costs | guesses cost | with all layers |\n|---|---|---|---|")
    for count in counts:
        chain = costs.of_chain(count)
        print(f"| {count} | {costs.of(count + 1):.2f} | {chain:.2f} | {chain * here / whole:.2f} |")
    print("\n| right | speed | guesses a pass | best here | best with all layers |\n|---|---|---|---|---|")
    for row in rows:
        now, all_layers = (at_best(row.right, costs, share, counts) for share in (1.0, here / whole))
        print(
            f"| {row.right:.0%} | {row.speed:.2f} x | {row.per_check:.1f} | {now[0]:.2f} x with {now[1]} "
            f"| {all_layers[0]:.2f} x with {all_layers[1]} |"
        )


def main() -> None:
    """Measure one shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--weights", choices=("int8", "int4"), default="int8")
    parser.add_argument("--tokens", type=int, default=96, help="of an answer")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    engine = Engine(Settings(drafts=(MTP,), max_context=1024))
    model = made(SHAPES[asked.shape], asked.weights)
    served = engine.serve(model)
    engine.warmup(served)
    known = engine._models.known(served)  # noqa: SLF001  the costs that it measured
    rows = [measure(engine, served, right, asked.tokens, asked.rounds) for right in RIGHT]
    report(SHAPES[asked.shape], served, known.drafts.costs, rows, known.ladders.guesses)
    engine.close()


if __name__ == "__main__":
    main()
