"""The command ``gemma-jax``.

gemma-jax warmup google/gemma-3-1b-it --max-context 8192
gemma-jax models
gemma-jax cache ls
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from langchain_gemma_jax.compile_cache.everywhere import stores
from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.config import compile_cache_root
from langchain_gemma_jax.errors import GemmaJaxError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; give its exit status: 1 if something is wrong that was asked about, 2 if it cannot be done."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except GemmaJaxError as error:
        print(f"gemma-jax: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gemma-jax", description="Gemma on JAX, inside your own process.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    warmup = commands.add_parser("warmup", help="compile all that a model needs, for the processes to come")
    warmup.add_argument("model", help="a folder, or a model's id on the Hugging Face Hub")
    warmup.add_argument(
        "--max-context", type=int, metavar="TOKENS", help="by default as many as the model was made for"
    )
    warmup.add_argument("--dtype", help="float32, bfloat16 or float16; by default the checkpoint's own")
    warmup.set_defaults(run=_warmup)

    models = commands.add_parser("models", help="what is known, on the disk, and in the memory of running processes")
    models.set_defaults(run=_models)

    cache = commands.add_parser("cache", help="look at the compiled programs that are kept on the disk")
    actions = cache.add_subparsers(required=True, metavar="ACTION")
    for name, run, text in (
        ("ls", _ls, "list them, the most recently used first"),
        ("verify", _verify, "read all of them, and delete what is damaged"),
        ("clear", _clear, "delete all of them"),
    ):
        actions.add_parser(name, help=text).set_defaults(run=run)
    return parser


def _warmup(options: argparse.Namespace) -> int:
    from langchain_gemma_jax import engine

    served = engine().load(options.model, dtype=options.dtype)
    _say(str(engine().warmup(served, max_context=options.max_context)))
    return 0


def _models(_: argparse.Namespace) -> int:
    from langchain_gemma_jax.cli_models import show_models

    show_models(_say)
    return 0


def _ls(_: argparse.Namespace) -> int:
    total = 0
    for store in _stores():
        entries = store.entries()
        total += sum(entry.bytes for entry in entries)
        _say(f"{store.folder}: {len(entries)} programs, {_size(sum(entry.bytes for entry in entries))}")
        for entry in entries:
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.last_used))
            _say(f"  {used}  {_size(entry.bytes):>9}  {entry.seconds:6.1f} s to compile  {entry.label}")
    _say(f"{_size(total)} together")
    return 0


def _verify(_: argparse.Namespace) -> int:
    damaged = 0
    for store in _stores():
        found = store.verify()
        damaged += len(found)
        for file in found:
            _say(f"damaged, deleted: {store.folder / file}")
        _say(f"{store.folder}: {len(store.entries())} programs are as they were written")
    return 1 if damaged else 0


def _clear(_: argparse.Namespace) -> int:
    _say(f"{sum(store.clear() for store in _stores())} programs deleted")
    return 0


def _stores() -> list[Store]:
    root = compile_cache_root()
    if root is None:
        _say("Compiled programs are not kept: GEMMA_JAX_COMPILE_CACHE says so.")
        return []
    return stores(Path(root))


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"


def _say(text: str) -> None:
    print(text)  # noqa: T201  that is what a command does


if __name__ == "__main__":
    sys.exit(main())
