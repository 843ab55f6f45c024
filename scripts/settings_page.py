"""Writes the tables of ``docs/settings.md``, from the table of settings: ``python scripts/settings_page.py``.

``tests/settings/test_table.py`` compares the page, so a setting that is not on it is seen.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from langchain_gemma_jax.chat_model import ChatGemmaJax
from langchain_gemma_jax.decisions import GemmaDecisionModel
from langchain_gemma_jax.embeddings import GemmaJaxEmbeddings
from langchain_gemma_jax.llms import GemmaJaxLLM
from langchain_gemma_jax.settings.table import (
    SETTINGS,
    ChatSettings,
    DialogueSettings,
    ModelSettings,
    SamplingSettings,
    TextSettings,
)

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
START, END = "<!-- settings: written by python scripts/settings_page.py -->", "<!-- settings: end -->"
MODELS = (ChatGemmaJax, GemmaJaxLLM, GemmaDecisionModel, GemmaJaxEmbeddings)
SHARED = (ModelSettings, TextSettings, DialogueSettings, SamplingSettings, ChatSettings)


def tables() -> str:
    """Return the tables of the page: of the settings that models share, then of those that one has alone."""
    return "\n\n".join(_table(kind) for kind in (*SHARED, *MODELS))


def written(page: str) -> str:
    """Return the page with its tables as they are now."""
    before, rest = page.split(START)
    return f"{before}{START}\n\n{tables()}\n\n{END}{rest.split(END)[1]}"


def _table(kind: type[BaseModel]) -> str:
    about = f"`{kind.__name__}` alone" if kind in MODELS else (kind.__doc__ or "").partition(":")[0].rstrip(".")
    owners = ", ".join(f"`{each.__name__}`" for each in MODELS if issubclass(each, kind))
    rows = [_row(name, kind.model_fields[name]) for name in kind.__annotations__ if name in kind.model_fields]
    head = [] if kind in MODELS else [f"Of {owners}.", ""]
    return "\n".join([f"## {about}", "", *head, "| setting | type | |", "|---|---|---|", *rows])


def _row(name: str, field: FieldInfo) -> str:
    names = SETTINGS[name].other_names if name in SETTINGS else ()
    also = f" Also: {', '.join(f'`{each}`' for each in names)}." if names else ""
    default = f", `{field.default!r}`" if isinstance(field.default, bool | int | float) else ""
    doc = re.sub(r"See docs/([\w-]+)\.md", r"See [\1](\1.md)", " ".join((field.description or "").split()))
    return f"| `{name}` | `{_type(field.annotation)}`{default} | {doc.replace('``', '`')}{also} |"


def _type(annotation: object) -> str:
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    if "Any" in text:  # a route's, of which pydantic is shown nothing
        return "Route or dict[str, str]"
    return text.replace("pydantic.types.", "").replace(" | None", "").replace("|", "or")


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
