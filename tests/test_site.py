"""The documentation as a site has every page once, every public name, and pages that can be read in one go."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import langchain_gemma_jax
from scripts.site_links import copy_of, lead_to_copies, outside_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
MOST_WORDS = 1500
LONG = {"reference.md", "architecture.md", "benchmarks.md"}  # to look things up in


def pages_of(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    entries = nav.values() if isinstance(nav, dict) else nav
    return [page for entry in entries for page in pages_of(entry)]


def test_the_navigation_has_every_page_once():
    assert sorted(pages_of(SITE["nav"])) == sorted(path.name for path in DOCS.glob("*.md"))


def test_the_reference_has_every_public_name_from_where_it_is_defined():
    shown = re.findall(r"^::: langchain_gemma_jax\.([\w.]+)$", (DOCS / "reference.md").read_text(), re.MULTILINE)
    defined = {f"{module}.{name}" for module, name in langchain_gemma_jax._LAZY.values()}
    assert {name for name in defined if shown.count(name) != 1} == set()
    assert "engine.api.process.engine" in shown  # which is a room that can be called


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md") if path.name not in LONG))
def test_a_page_is_short_enough_to_be_read(page):
    assert len(re.findall(r"\S*\w\S*", (DOCS / page).read_text())) <= MOST_WORDS


def test_links_that_leave_the_folder_lead_to_copies():
    text = "[a](../examples/agent.py#main) [b](memory.md) [c](../gone.py) [d](https://example.org/../examples/agent.py)"
    assert outside_of(text) == ["examples/agent.py"]
    assert lead_to_copies(text) == text.replace("../examples/agent.py#main", copy_of("examples/agent.py"))
