"""All stores of this user's, also those of other devices and of releases that are no longer installed."""

from __future__ import annotations

from pathlib import Path

from langchain_gemma_jax.compile_cache.store import Store


def stores(root: Path) -> list[Store]:
    """One for each folder of programs below the root. An unsafe one is said to be empty, with a warning."""
    folders = (kind for platform in _folders(root) for kind in _folders(platform))
    return [Store(folder, root=root) for folder in folders]


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:  # there is none, or it is not ours to read
        return []
