"""The official library's results, for the comparison: the models of ``gemma_tree_dump.py``, and more of each.

    python tests/parity/reference_gemma.py OUT_FOLDER [--seeds N] [--only NAME]

Needs an environment with the `gemma` package. Writes the same folders as ``gemma_tree_dump.py``, but ``continuation``
has 64 tokens, ``logits`` all of them, and ``reference.npz``, which is written last, a digest of what it follows from:
a folder that has the right one is left alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.parity import gemma_tree_dump as official
from tests.parity.made_up import NEW_TOKENS

SOURCES = (Path(__file__), Path(official.__file__))
PROMPT, LENGTH = official.PROMPT, official.PROMPT + NEW_TOKENS

Logits = Callable[[object, np.ndarray], jax.Array]


def digest(name: str, seed: int) -> str:
    """Changes with anything that the files follow from."""
    parts = [name, str(seed), version("gemma"), version("jax"), *(path.read_text() for path in SOURCES)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_there(reference: Path, wanted: str) -> bool:
    """Return True if an earlier run wrote exactly this."""
    if not reference.exists():
        return False
    with np.load(reference) as found:
        return str(found["digest"]) == wanted


def greedy(logits: Logits, tree: object, prompt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All tokens, and the logits of one forward over them. What stands right of a token cannot reach it."""
    tokens = np.zeros((1, LENGTH), np.int32)
    tokens[0, :PROMPT] = prompt
    for end in range(PROMPT, LENGTH):
        tokens[0, end] = np.asarray(logits(tree, tokens))[end - 1].argmax()
    return tokens[0], np.asarray(logits(tree, tokens))


def dump(name: str, model: object, seeds: int, folder: Path) -> None:
    """Write the folders of one architecture that are not there."""
    missing = [
        seed for seed in range(seeds) if not is_there(folder / f"{name}-{seed}/reference.npz", digest(name, seed))
    ]
    if not missing:
        return
    config = official.read_architecture(model).replace(max_context=LENGTH)
    shapes = jax.eval_shape(model.init, jax.random.key(0), jnp.ones((1, LENGTH), jnp.int32))["params"]
    logits = official.forward(model)
    for seed in missing:
        random = np.random.default_rng([seed, *name.encode()])
        tree = official.random_tree(shapes, random, config)
        tokens, scores = greedy(logits, tree, random.integers(3, official.VOCABULARY, PROMPT))
        out = folder / f"{name}-{seed}"
        out.mkdir(parents=True, exist_ok=True)
        np.savez(out / "tree.npz", **dict(official.flatten(tree)))
        (out / "config.json").write_text(json.dumps(dataclasses.asdict(config), indent=1))
        unfinished = out / "reference.part.npz"
        np.savez(
            unfinished, tokens=tokens[:PROMPT], continuation=tokens[PROMPT:], logits=scores, digest=digest(name, seed)
        )
        unfinished.replace(out / "reference.npz")


def main() -> None:
    """Write them all."""
    models = official.models()
    parser = argparse.ArgumentParser(description="Dump trees, logits and greedy tokens of the official Gemma library.")
    parser.add_argument("folder", type=Path, help="where to write")
    parser.add_argument("--seeds", type=int, default=10, help="models of each architecture (10)")
    parser.add_argument("--only", help="one architecture")
    options = parser.parse_args()
    if options.only not in {None, *models}:
        parser.error(f"--only: expected one of {', '.join(models)}, found {options.only!r}")
    official.CONTINUATION = NEW_TOKENS  # it pads its forward to this
    official.check_sizes()
    for name in [options.only] if options.only else models:
        dump(name, models[name], options.seeds, options.folder)
        print(f"gemma {version('gemma')}: {name}", flush=True)  # noqa: T201  a script's progress


if __name__ == "__main__":
    main()
