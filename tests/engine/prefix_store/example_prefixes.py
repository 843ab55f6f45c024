"""Prefixes of nobody's, made up from a number, so that whoever reads one can tell whether it is right.

Run as ``python -m tests.engine.prefix_store.example_prefixes FOLDER SEED COUNT CAP BYTES``, it writes so many. With one
more argument, which is a private folder, FOLDER is one that machines share, and what is there is read as well.
"""

from __future__ import annotations

import random
import sys
from array import array
from pathlib import Path

import numpy as np

from langchain_gemma_jax.engine.prefix_store.prefix_file import Mark, PrefixHeader
from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_names import PrefixNames, family_name
from langchain_gemma_jax.engine.prefix_store.sealing import Digests, Encrypted, Sealing
from langchain_gemma_jax.engine.prefix_store.stored_prefixes import StoredPrefixes

FAMILY = family_name("a model", "its programs")
SCOPE = "somebody"
KEY = bytes(range(32))


def keys_of(seed: int) -> array[int]:
    """Return the keys of this prefix's beginning: 5 tokens, and one more that is not kept."""
    return array("q", [seed, *random.Random(seed).choices(range(1000), k=5)])


def blocks_of(seed: int, width: int = 8) -> list[np.ndarray]:
    """One global layer, and two states of a local one."""
    numbers = np.random.default_rng(seed)
    return [numbers.normal(size=(2, slots, width)).astype(np.float32) for slots in (5, 5, 3, 3, 3, 3)]


def header_of(names: PrefixNames, seed: int, blocks: list[np.ndarray], scope: str = SCOPE) -> PrefixHeader:
    """Its header, with marks at 3 tokens and at 5."""
    keys = keys_of(seed)
    marks = tuple(Mark(names.digest(scope, keys, at), at, ring) for at, ring in ((3, 1), (5, 0)))
    return PrefixHeader(names.family, f"example {seed}", 0.5, 5, "float32", marks, tuple(b.shape for b in blocks), 2)


def store_in(
    folder: Path,
    cap: int | None = 2**30,
    sealing: Sealing | None = None,
    family: str = FAMILY,
    private: Path | None = None,
) -> StoredPrefixes:
    sealing = Digests() if sealing is None else sealing
    found = StoredPrefixes(PrefixNames(family, sealing.secret), PrefixFolder(folder, cap, private), sealing)
    found.refresh()
    return found


def put(stored: StoredPrefixes, seed: int, width: int = 8, scope: str = SCOPE) -> str | None:
    """Write one. Gives its file name, as the store does."""
    blocks = blocks_of(seed, width)
    return stored.write(header_of(stored.names, seed, blocks, scope), blocks)


def found_right(stored: StoredPrefixes, seed: int, width: int = 8) -> bool:
    """Return True if a prefix is there, each number as it was. It may be missing, and never be wrong."""
    best = stored.find(SCOPE, keys_of(seed), 0)
    arrays = None if best is None else stored.read(best)
    if best is None or arrays is None:
        return False
    assert best.mark.length == 5
    for found, wanted in zip((*arrays.globals, *arrays.rings), blocks_of(seed, width), strict=False):
        np.testing.assert_array_equal(found, wanted)
    assert (len(arrays.globals), len(arrays.rings)) == (2, 2)
    return True


def shared_in(folder: Path, private: Path, cap: int | None = None, key: bytes = KEY, **how: str) -> StoredPrefixes:
    """The same, in a folder that machines share."""
    return store_in(folder, cap, Encrypted(key), private=private, **how)


def main(folder: str, seed: str, count: str, cap: str, width: str, private: str = "") -> None:
    stored = shared_in(Path(folder), Path(private), int(cap)) if private else store_in(Path(folder), int(cap))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for number in range(int(count)):
        put(stored, int(seed) + number, int(width))
        if private:
            stored.refresh()
            found_right(stored, int(seed) + random.randrange(int(count)), int(width))


if __name__ == "__main__":
    main(*sys.argv[1:])
