"""What a model can take beside text, by what its configuration says: known without reading a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from langchain_gemma_jax.models.configuration.strict_json import read_object

READ = {"gemma3": {"vision_config": "image"}}
"""By the kind of model: which of its encoders are implemented, and what they take."""

PUBLISHED: Mapping[str, frozenset[str]] = dict.fromkeys(
    ("gemma-3-4b", "gemma-3-12b", "gemma-3-27b"), frozenset({"image"})
)
"""By the name of a published size: what it takes beside text."""


def senses_in(folder: Path) -> frozenset[str]:
    """Return what the model in a folder takes beside text: ``image``, ``audio``, both or neither.

    Raises:
        CheckpointError: its configuration cannot be read.
    """
    path = folder / "config.json"
    raw = read_object(path, path)
    encoders = READ.get(str(raw.get("model_type")), {})
    return frozenset(kind for name, kind in encoders.items() if raw.get(name) is not None)
