"""Load a model by its id, pin its commit, and load it once more with the Hub gone.

    python examples/from_the_hub.py                           # no network: brings a small Hub of its own
    python examples/from_the_hub.py google/gemma-3-270m-it    # the Hub, or what HF_ENDPOINT names

The small Hub is a server on 127.0.0.1 that holds a tiny random Gemma. Pointing HF_ENDPOINT at it is all
that it takes, as it is with a mirror or a company's proxy.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from langchain_gemma_jax import load_model
from langchain_gemma_jax.models.hub.download import download


def main(model_id: str) -> str:
    """Load the model; return the commit that was loaded."""
    folder = download(model_id)
    commit = folder.name  # the branch may move tomorrow; this is what it is today
    files = sorted(folder.iterdir())
    print(f"{model_id} at {commit[:12]}: {sum(file.stat().st_size for file in files):,} bytes in {len(files)} files")
    for file in files:
        print(f"  {file.stat().st_size:>14,}  {file.name}")
    load(model_id, commit)
    return commit


def load(model_id: str, commit: str) -> None:
    """Load a commit, which needs no network once it is in the cache."""
    with load_model(model_id, revision=commit) as model:
        print(f"{model.name}: {model.config.generation}, {len(model.config.layers)} layers, {model.nbytes:,} bytes")


def without_a_network() -> None:
    """The same with a Hub, a cache and a model that exist only for this example."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from hub_server import HubServer
    from tiny_gemma import tiny_gemma

    with tempfile.TemporaryDirectory() as cache, HubServer() as hub:
        hub.add("example/tiny-gemma", tiny_gemma(shards=2))
        os.environ |= {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": cache, "HF_HUB_OFFLINE": "0"}
        commit = main("example/tiny-gemma")
        hub.stop()
        print("The Hub is gone, and the commit loads all the same:")
        load("example/tiny-gemma", commit)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        without_a_network()
