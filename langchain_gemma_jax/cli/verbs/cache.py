"""``gemma-jax cache``: look at the compiled programs, the prefixes and the weights that are kept on the disk."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_gemma_jax.cli.terminal.arguments import Verbs, subverbs, verb
from langchain_gemma_jax.cli.terminal.output import say
from langchain_gemma_jax.compile_cache.everywhere import stores
from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.config import compile_cache_root, prefix_folder, weights_folder

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder
    from langchain_gemma_jax.models.mapped.weight_files import WeightFiles


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(verbs, "cache", "list, check or delete the compiled programs on the disk", "gemma-jax cache ls")
    parser.set_defaults(run=lambda _: parser.error("which action?"))
    actions = subverbs(parser, "ACTION")
    for name, run, text in (
        ("ls", _ls, "list them, the most recently used first"),
        ("verify", _verify, "read all of them, and delete what is damaged"),
        ("clear", _clear, "delete all of them"),
    ):
        action = verb(actions, name, text, f"gemma-jax cache {name}")
        action.set_defaults(run=run)
        if name != "verify":  # a prefix is proven whenever it is read
            instead = action.add_mutually_exclusive_group()
            instead.add_argument(
                "--prefixes",
                action="store_true",
                help="the prefixes of conversations instead, which are text of your users",
            )
            instead.add_argument(
                "--weights", action="store_true", help="the files of mapped weights instead, which are copies of models"
            )


def _ls(options: argparse.Namespace) -> int:
    if options.prefixes:
        return _ls_prefixes() if _any_prefixes() else 0
    if options.weights:
        return _ls_weights() if _any_weights() else 0
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


def _clear(options: argparse.Namespace) -> int:
    if options.prefixes:
        say(f"{_prefixes().clear() if _any_prefixes() else 0} prefixes deleted")
        return 0
    if options.weights:
        say(f"{_weights().clear() if _any_weights() else 0} files of weights deleted")
        return 0
    say(f"{sum(store.clear() for store in _stores())} programs deleted")
    return 0


def _ls_prefixes() -> int:
    folder = _prefixes()
    names = folder.names()
    for name in sorted(names):
        if (header := folder.header(name, None)) is not None:
            size = header.nbytes(range(len(header.shapes)))
            kept = "encrypted" if header.salt else "not encrypted"
            say(f"  {_size(size):>10}  {header.tokens:>7} tokens, {kept}  {header.label}")
    say(f"{folder.path}: {len(names)} prefixes, {_size(folder.nbytes())} together")
    return 0


def _ls_weights() -> int:
    files = _weights()
    listed = sorted(files.listed(), key=lambda each: -each[1].st_atime_ns)
    for label, facts in listed:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(facts.st_atime_ns / 1e9))
        say(f"  {used}  {_size(facts.st_size):>12}  {label}")
    total = sum(facts.st_size for _, facts in listed)
    say(f"{files.path}: {len(listed)} files of weights, {_size(total)} together")
    return 0


def _any_weights() -> bool:
    return _exists(
        weights_folder(), "no weights are kept. A model of 32 MiB or more has a file once a CPU has loaded it."
    )


def _weights() -> WeightFiles:
    from langchain_gemma_jax.models.mapped.weight_files import WeightFiles

    return WeightFiles(weights_folder())


def _any_prefixes() -> bool:
    return _exists(prefix_folder(), "no prefixes are kept. configure(prefix_store=...) keeps some.")


def _exists(folder: Path, otherwise: str) -> bool:
    """Return True if there is a folder; else print what that means, and do not make it."""
    if not folder.is_dir():
        say(f"{folder}: {otherwise}")
    return folder.is_dir()


def _prefixes() -> PrefixFolder:
    from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder

    return PrefixFolder(prefix_folder(), cap=2**62)


def _stores() -> list[Store]:
    root = compile_cache_root()
    if root is None:
        say("Compiled programs are not kept: GEMMA_JAX_COMPILE_CACHE says so.")
        return []
    return stores(Path(root))


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"
