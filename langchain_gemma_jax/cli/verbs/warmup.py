"""``gemma-jax warmup``: compile all programs of a model in advance, for later processes."""

from __future__ import annotations

import argparse

from langchain_gemma_jax.cli.terminal.arguments import Verbs, count, devices, verb
from langchain_gemma_jax.cli.terminal.output import say


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(
        verbs,
        "warmup",
        "compile all that a model needs, for the processes to come",
        "gemma-jax warmup google/gemma-3-1b-it --max-context 8192",
    )
    parser.add_argument("model", help="a folder, a model's id on the Hugging Face Hub, or an embedded one: sprout-s")
    parser.add_argument(
        "--max-context", type=count, metavar="TOKENS", help="by default as many as the model was made for"
    )
    parser.add_argument("--dtype", help="float32, bfloat16 or float16; by default the checkpoint's own")
    parser.add_argument("--weights", help="int8 or int4, as chat models are to store them; by default as in its files")
    parser.add_argument("--activations", help="float32 or int8, as chat models are to multiply packed weights by")
    parser.add_argument("--devices", type=devices, metavar="COUNT", help='that it is divided among, or "auto"')
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from langchain_gemma_jax import engine

    served = engine().load(
        options.model,
        dtype=options.dtype,
        weights=options.weights,
        activations=options.activations,
        devices=options.devices,
    )
    say(str(engine().warmup(served, max_context=options.max_context)))
    return 0
