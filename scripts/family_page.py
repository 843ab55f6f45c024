"""Writes the table of the family in ``docs/models.md``: each model_type with "gemma" in it, and what opens it.

    python scripts/family_page.py

``tests/test_family.py`` compares. The kinds are those of transformers (``tests/goldens/model_types.json``); whether one
opens, and what is said if not, is asked of the code that reads ``config.json``.
"""

from __future__ import annotations

import json
from pathlib import Path

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.hf_config import DRAFTERS, PARTS, config_from_hf

ROOT = Path(__file__).parents[1]
PAGE, TYPES = ROOT / "docs" / "models.md", ROOT / "tests" / "goldens" / "model_types.json"
START, END = "<!-- family: written by python scripts/family_page.py -->", "<!-- family: end -->"

ABOUT = {
    "gemma": "Gemma 1",
    "gemma2": "Gemma 2",
    "gemma3": "Gemma 3 that sees: 4B, 12B, 27B; MedGemma, TranslateGemma",
    "gemma3_text": "Gemma 3 270M and 1B, FunctionGemma, [EmbeddingGemma](embeddings.md)",
    "gemma4": "Gemma 4 E2B, E4B, 26B-A4B, 31B",
    "gemma4_text": "the same without encoders",
    "gemma4_unified": "Gemma 4 12B",
    "gemma4_unified_text": "the same without pictures and sounds",
    "embedding_gemma2": "EmbeddingGemma 2; its [text part](embeddings.md) is read",
    "embedding_gemma2_text": "its text part alone",
    "vaultgemma": "VaultGemma",
    "paligemma": "[PaliGemma](#paligemma) 1 and 2",
    "shieldgemma2": "[ShieldGemma 2](#shieldgemma-2)",
}
"""The published models of each kind that opens."""


def types() -> list[str]:
    """Return the kinds of the release of transformers that is looked at."""
    found: list[str] = json.loads(TYPES.read_text())["types"]
    return found


def what_is_said(kind: str) -> str | None:
    """Return the refusal of a model_type, without the place where it was found. None: it opens."""
    try:
        config_from_hf({"model_type": kind}, "x")
    except UnsupportedModelError as error:
        return str(error).removeprefix("x: ")
    return None


def table() -> str:
    """Return the table of the page: kinds of which the same is to be said share a row."""
    said: dict[str, list[str]] = {}
    for kind in types():
        said.setdefault(_about(kind), []).append(f"`{kind}`")
    return "\n".join(
        ["| `model_type` | | |", "|---|---|---|", *(f"| {', '.join(said[each])} | {each} |" for each in said)]
    )


def _about(kind: str) -> str:
    if kind in DRAFTERS:
        return "loads with its model | a drafter: [`drafter=`](engine.md#drafters-of-gemma-4)"
    if kind in PARTS:
        return f"loads with its model | {PARTS[kind]}"
    refusal = what_is_said(kind)
    return f"loads | {ABOUT[kind]}" if refusal is None else f"refused | {refusal}"


def written(page: str) -> str:
    """Return the page with its table as it is now."""
    before, rest = page.split(START)
    return f"{before}{START}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
