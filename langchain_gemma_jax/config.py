"""Every environment variable that the package reads, read here and nowhere else.

GEMMA_JAX_CACHE_DIR    where to keep what can always be made again; an absolute folder
XDG_CACHE_HOME         the folder of all programs' caches; ours is ``langchain-gemma-jax`` in it

Libraries below this one have their own: huggingface_hub reads ``HF_TOKEN``, ``HF_HOME`` and
``HF_HUB_OFFLINE``, JAX reads ``JAX_PLATFORMS`` and ``XLA_FLAGS``.
"""

from __future__ import annotations

import os
from pathlib import Path

from langchain_gemma_jax.errors import InputError


def cache_dir() -> Path:
    """The folder for what can always be made again. It may not exist yet.

    Raises:
        InputError: ``GEMMA_JAX_CACHE_DIR`` is set, and is not an absolute path.
    """
    if own := os.environ.get("GEMMA_JAX_CACHE_DIR"):
        folder = Path(own).expanduser()
        if not folder.is_absolute():
            raise InputError(
                f"GEMMA_JAX_CACHE_DIR: expected an absolute folder such as /var/cache/gemma-jax, found {own!r}."
            )
        return folder
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not shared.is_absolute():  # unset or, as the XDG specification asks, not to be used
        shared = Path.home() / ".cache"
    return shared / "langchain-gemma-jax"
