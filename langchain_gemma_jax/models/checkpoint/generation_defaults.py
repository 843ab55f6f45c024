"""The sampling settings that a model's authors recommend."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.strict_json import read_object

GENERATION_DEFAULTS = "generation_config.json"


def generation_defaults_in(folder: Path) -> Mapping[str, object]:
    """Return the content of a folder's ``generation_config.json``; empty if there is none."""
    shown = folder / GENERATION_DEFAULTS
    return read_object(real_file(folder, GENERATION_DEFAULTS), shown) if os.path.lexists(shown) else {}
