"""The documentation as a site has every page once, every public name, and pages that can be read in one go."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import langchain_gemma_jax
from scripts.site_links import copy_of, lead_to_copies, outside_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
MOST_PAGES, MOST_WORDS, MOST_WORDS_OF_ALL = 40, 1500, 30_000
FIGURES = re.compile(r"<!-- (?P<what>[^:\n]+): written by .*?<!-- (?P=what): end -->", re.DOTALL)  # looked up, not read
LONG = {"reference.md", "architecture.md"}  # to look things up in


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


def words_of(page: str) -> int:
    """The words of a page, without tables that programs write."""
    return len(re.findall(r"\S*\w\S*", FIGURES.sub("", (DOCS / page).read_text())))


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md") if path.name not in LONG))
def test_a_page_is_short_enough_to_be_read(page):
    assert words_of(page) <= MOST_WORDS


def test_there_are_few_pages_and_few_words():
    pages = [path.name for path in DOCS.glob("*.md")]
    assert len(pages) <= MOST_PAGES
    assert sum(map(words_of, pages)) <= MOST_WORDS_OF_ALL


def test_every_extra_is_on_the_page_about_installing_and_pages_ask_for_them_in_one_way():
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]) - {"dev"}
    asked = {page.name: re.findall(r"pip install ([^ `\n]*\[[^ `\n]*)", page.read_text()) for page in DOCS.glob("*.md")}
    assert {each.strip("'.[]") for each in asked["install.md"]} == extras
    assert {
        page: each for page, found in asked.items() for each in found if not re.fullmatch(r"'\.\[\w+\]'", each)
    } == {}


def test_the_sites_own_style_is_in_it():
    (style,) = SITE["extra_css"]
    rules = (DOCS / style).read_text()
    assert "thead:not(:has(th:not(:empty)))" in rules  # a table without headings shows none
    assert "overflow-wrap: anywhere" in rules  # a table of many columns is cut nowhere
    assert "overflow-wrap: break-word" in rules.partition("@media")[2]  # and on a narrow screen no word is


def test_a_checklist_is_shown_as_one():
    lists = [page.name for page in DOCS.glob("*.md") if "- [ ] [" in page.read_text()]
    assert not lists or "pymdownx.tasklist" in SITE["markdown_extensions"]  # else a box takes the link after it


def test_links_that_leave_the_folder_lead_to_copies():
    text = "[a](../examples/agent.py#main) [b](memory.md) [c](../gone.py) [d](https://example.org/../examples/agent.py)"
    assert outside_of(text) == ["examples/agent.py"]
    assert lead_to_copies(text) == text.replace("../examples/agent.py#main", copy_of("examples/agent.py"))


def run_script(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The script that builds the site, in a tree of its own with nothing set up."""
    (folder / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts" / "docs", folder / "scripts")
    return subprocess.run([shutil.which("sh"), script], env=environment, capture_output=True, text=True, check=False)


def test_without_a_python_the_script_says_what_is_missing(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("cat", "dirname"):
        (tools / tool).symlink_to(shutil.which(tool))
    done = run_script(tmp_path, {"PATH": str(tools)})
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "docs/*.md" in done.stderr  # what still works


@pytest.mark.long
def test_without_a_network_the_script_says_what_still_works(tmp_path):
    environment = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, "PIP_NO_INDEX": "1", "HOME": str(tmp_path)}
    done = run_script(tmp_path, environment)
    assert done.returncode == 1
    assert "MkDocs could not be installed: is there a network? The pages are plain text: docs/*.md" in done.stderr
    assert not (tmp_path / ".envs" / "docs" / ".installed").exists()  # so the next run tries again
