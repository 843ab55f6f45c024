"""Writes ``model_types.json``: every model_type of transformers that has "gemma" in it.

    python tests/goldens/make_model_types.py

Needs an environment with transformers 5.
"""

from __future__ import annotations

import json
from pathlib import Path

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES


def main() -> None:
    """Write it."""
    types = sorted(name for name in CONFIG_MAPPING_NAMES if "gemma" in name)
    found = {"made_by": f"transformers {transformers.__version__}", "types": types}
    Path(__file__).with_name("model_types.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
