"""``gemma-jax warmup``: compile all programs of a model in advance, for later processes."""

from __future__ import annotations

import argparse

from langchain_gemma_jax.cli.terminal.arguments import Verbs, given_settings, verb
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
    parser.take_settings("max_context", "dtype", "weights", "activations", "devices")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from langchain_gemma_jax import engine

    how = given_settings(options)
    max_context = how.pop("max_context", None)
    say(str(engine().warmup(engine().load(options.model, **how), max_context=max_context)))
    return 0
