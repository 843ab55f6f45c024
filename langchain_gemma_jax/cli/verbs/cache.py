"""``gemma-jax cache``: look at the compiled programs that are kept on the disk."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from langchain_gemma_jax.cli.terminal.arguments import Verbs, subverbs, verb
from langchain_gemma_jax.cli.terminal.output import say
from langchain_gemma_jax.compile_cache.everywhere import stores
from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.config import compile_cache_root


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(verbs, "cache", "look at the compiled programs that are kept on the disk", "gemma-jax cache ls")
    parser.set_defaults(run=lambda _: parser.error("which action?"))
    actions = subverbs(parser, "ACTION")
    for name, run, text in (
        ("ls", _ls, "list them, the most recently used first"),
        ("verify", _verify, "read all of them, and delete what is damaged"),
        ("clear", _clear, "delete all of them"),
    ):
        verb(actions, name, text, f"gemma-jax cache {name}").set_defaults(run=run)


def _ls(_: argparse.Namespace) -> int:
    total = 0
    for store in _stores():
        entries = store.entries()
        total += sum(entry.bytes for entry in entries)
        say(f"{store.folder}: {len(entries)} programs, {_size(sum(entry.bytes for entry in entries))}")
        for entry in entries:
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.last_used))
            say(f"  {used}  {_size(entry.bytes):>9}  {entry.seconds:6.1f} s to compile  {entry.label}")
    say(f"{_size(total)} together")
    return 0


def _verify(_: argparse.Namespace) -> int:
    damaged = 0
    for store in _stores():
        found = store.verify()
        damaged += len(found)
        for file in found:
            say(f"damaged, deleted: {store.folder / file}")
        say(f"{store.folder}: {len(store.entries())} programs are as they were written")
    return 1 if damaged else 0


def _clear(_: argparse.Namespace) -> int:
    say(f"{sum(store.clear() for store in _stores())} programs deleted")
    return 0


def _stores() -> list[Store]:
    root = compile_cache_root()
    if root is None:
        say("Compiled programs are not kept: GEMMA_JAX_COMPILE_CACHE says so.")
        return []
    return stores(Path(root))


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"
