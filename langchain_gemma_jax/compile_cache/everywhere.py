"""All of this user's stores, including those of other devices and of JAX releases that are no longer installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from langchain_gemma_jax.compile_cache.install import current_root, is_kind
from langchain_gemma_jax.compile_cache.platform import is_platform
from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.compile_cache.sweep import ENTRY


def stores(root: Path) -> list[Store]:
    """Return a store for each folder of programs below the root. An unsafe folder counts as empty, with a warning.

    The root may hold other folders too: only names that this package gives are taken for stores.
    """
    folders = (kind for platform in _folders(root, is_platform) for kind in _folders(platform, is_kind))
    return [Store(folder, root=root) for folder in folders]


def nothing_kept() -> bool:
    """Return True if this user has no compiled programs in the current folder, for any device. JAX is not asked."""
    root = current_root()
    return root is None or not any(any(store.folder.glob(f"*{ENTRY}")) for store in stores(root))


def _folders(folder: Path, is_ours: Callable[[str], bool]) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if is_ours(path.name) and path.is_dir())
    except OSError:  # it is missing or cannot be read
        return []
