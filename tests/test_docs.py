"""The documentation is true: its Python runs, its links lead somewhere, its commands exist."""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from langchain_gemma_jax import BusyError
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.models.seams.media_support import MediaSupport
from scripts.diagrams import DEMO
from tests.chat.scripted import ScriptedEngine
from tests.chat.sensing import HeardSounds
from tests.chat.tiny import SAMPLED, tiny_folder
from tests.example_runner import ExampleRunner
from tests.own_engine import own_engine
from tests.seeing_gemma import add_sight
from tests.tiny_embedder import tiny_embedder

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "training" / "docs").rglob("*.md")])
OF_SEVERAL_PROCESSES = {"subprocess_pool.py", "two_replicas.py", "several_hosts.py"}
EXAMPLES = [
    pytest.param(path, marks=[pytest.mark.slow] if path.name in OF_SEVERAL_PROCESSES else [])
    for path in sorted((ROOT / "examples").glob("*.py"))
]
OF_THEIR_OWN = {"git_server.py", "service.py", "voice_note.py"}  # recipes that are not run as they stand
RECIPES = sorted(path for path in (ROOT / "examples" / "recipes").glob("*.py") if path.name not in OF_THEIR_OWN)
SEES = "gemma-3-4b-it"  # a folder with the published model, of which a test has a tiny one
SHOWN = {  # of what a recipe prints
    "mail_triage.py": "kind='incident' urgency=5 to_do='Restart it'",
    "invoices.py": "invoices/invoices.csv, with a sum of 1100.50",
    "coding_helper.py": "The search is notes.py:1:x = 1  # TODO: name it",
    "rag.py": "from: {'rules/house.md'}",
    "supervisor.py": "19.3 km",
    "nightly_batch.py": '"order": {"item": "soup", "count": 1}',
}

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
MAKE = re.compile(r"(?:^|`)make ((?:[a-z-]+ ?)+)", re.MULTILINE)
EXAMPLE_SECONDS = 280
EMBEDDER = "embeddinggemma-300m"  # a folder where whoever reads has the published model, and a test a tiny one


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def fences(text: str) -> list[tuple[str, str, int]]:
    """The info string, the text and the first line's number of every fenced block."""
    return [(m["info"].strip(), m["body"], text.count("\n", 0, m.start("body"))) for m in FENCE.finditer(text)]


def run_page(text: str, page: str) -> None:
    """Run a page's Python from top to bottom in one namespace, as a reader would."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for info, body, line in fences(text):
        if info.startswith("python"):
            if info != "python":
                raise AssertionError(
                    f"{page}:{line}: ```{info}: what cannot run here is ```text, all else is ```python"
                )
            # Padded, so that a traceback shows the page's line; without what this file imports from the future.
            code = compile("\n" * line + body, page, "exec", dont_inherit=True)
            exec(code, namespace)


@contextmanager
def own_settings() -> Iterator[None]:
    """An engine of a page's own, and settings that are gone with it."""
    with own_engine(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "_settings", process._settings)
        yield


def dead_links(text: str, folder: Path) -> list[str]:
    prose = FENCE.sub("", text)
    targets = [match["target"].partition("#")[0] for match in LINK.finditer(prose)]
    return [target for target in targets if target and "://" not in target and not (folder / target).exists()]


def make_targets(text: str) -> set[str]:
    """The targets of every ``make`` in a code span or block."""
    code = "\n".join([body for _, body, _ in fences(text)] + re.findall(r"`make [^`]*`", text))
    return {target for match in MAKE.finditer(code) for target in match[1].split()}


@pytest.fixture(scope="module")
def no_engine():
    """No engine of other tests: a reader begins without one, and one's settings are not for all pages."""
    with own_engine():
        yield


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=name)
@pytest.mark.usefixtures("no_engine")
def test_python_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    if f"./{EMBEDDER}" in text:
        tiny_embedder(tmp_path / EMBEDDER)
    # What can be set only before the engine's first use is told to a reader who has not used it yet.
    with own_settings() if "configure(prefix_store=" in text else nullcontext():
        run_page(text, name(page))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    assert dead_links(page.read_text(), page.parent) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_targets_exist(page):
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert make_targets(page.read_text()) <= known


def test_the_index_links_every_page():
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / match["target"]).resolve() for match in LINK.finditer(index.read_text())}
    assert {page for page in PAGES if page.parent != ROOT} - linked - {index} == set()


def test_the_readme_begins_with_how_to_run_and_test():
    commands = fences((ROOT / "README.md").read_text())[0][1]
    assert [line.split("#")[0].strip() for line in commands.splitlines()] == ["make demo", "make test"]


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """Return a runner of the examples, which share compiled programs: some of their models are the same."""
    place = tmp_path_factory.getbasetemp()
    shared = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place  # whichever process runs which example
    # What an example compiles is small; that it runs is what is tested, and not how fast.
    environment = {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    environment |= {"GEMMA_JAX_COMPILE_CACHE": str(shared / "examples" / "programs")}
    with ExampleRunner(os.environ | environment) as made:
        yield made


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_an_example_runs(example, runner, tmp_path):
    if f"./{EMBEDDER}" in example.read_text():
        tiny_embedder(tmp_path / EMBEDDER)
    done = runner.run(example, tmp_path, EXAMPLE_SECONDS)
    assert done.status == 0, done.err
    assert done.out, "an example shows something"
    if example.name == "agent.py":  # which `make demo` runs
        assert_the_demo_is_clean(done.out)


@pytest.mark.long
@pytest.mark.parametrize(("place", "shown"), [("notebook.ipynb", "19.3 km"), ("recipes/notebook.ipynb", "Visit(city=")])
def test_the_notebook_runs(place, shown, runner, tmp_path):
    notebook = json.loads((ROOT / "examples" / place).read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    script = tmp_path / "notebook.py"
    script.write_text("\n".join(cells) + "\nassert '<svg' in engine().report()._repr_html_()\n")
    done = runner.run(script, tmp_path, EXAMPLE_SECONDS)
    assert done.status == 0, done.err
    assert shown in done.out
    assert all(not cell.get("outputs") for cell in notebook["cells"]), "a notebook is kept without outputs"


@pytest.mark.long
@pytest.mark.parametrize("recipe", RECIPES, ids=name)
def test_a_recipe_runs(recipe, runner, tmp_path):
    text = recipe.read_text()
    if f"./{EMBEDDER}" in text:
        tiny_embedder(tmp_path / EMBEDDER)
    if f"./{SEES}" in text:
        add_sight(tiny_folder(tmp_path / SEES, "gemma", **SAMPLED))
    done = runner.run(recipe, tmp_path, EXAMPLE_SECONDS)
    assert done.status == 0, done.err
    assert SHOWN.get(recipe.name, "") in done.out
    again = runner.run(recipe, tmp_path, EXAMPLE_SECONDS)  # what was kept is found, and nothing is done twice
    assert again.status == 0, again.err
    if recipe.name == "nightly_batch.py":
        assert len((tmp_path / "rows.done.jsonl").read_text().splitlines()) == 12
    if recipe.name == "alt_texts.py":
        assert (done.out != "", again.out) == (True, "")


@pytest.mark.long
def test_the_service_answers_and_streams(monkeypatch):
    from fastapi.testclient import TestClient  # what this recipe alone needs

    with own_engine():
        module = runpy.run_path(str(ROOT / "examples" / "recipes" / "service.py"))
        client = TestClient(module["app"], raise_server_exceptions=False)
        found = client.post("/visit", params={"text": "The city is Oslo. The days are 4."})
        assert set(found.json()) == {"city", "days"}
        assert client.get("/answer", params={"question": "Hello!"}).text
        monkeypatch.setattr(type(module["llm"]), "ainvoke", refused)
        monkeypatch.setattr(type(module["llm"]), "_agenerate", refused)
        busy = client.post("/visit", params={"text": "x"})
        assert (busy.status_code, busy.json()) == (429, {"error": "full"})


def test_the_voice_note_is_heard(monkeypatch, tmp_path, capsys):
    engine = ScriptedEngine(['{"tasks":["Buy stamps"]}<turn|>'], support=MediaSupport(sounds=HeardSounds()))
    monkeypatch.setattr(process, "engine", lambda: engine)
    monkeypatch.setattr(sys, "argv", ["voice_note.py"])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "recipes" / "voice_note.py"))
    assert "Buy stamps" in capsys.readouterr().out
    assert engine.submitted[0]["spans"].media


async def refused(*_: object, **__: object) -> None:
    raise BusyError("full")


def test_every_example_is_on_a_page():
    """Readers find examples through pages: one that no page names is found by nobody."""
    text = "".join(page.read_text() for page in PAGES)
    examples = {path.name for path in (ROOT / "examples").rglob("*") if path.suffix in {".py", ".ipynb"}}
    assert {each for each in examples if each not in text} == {"shared.py"}, "which the others import"


def test_recipes_are_short_and_listed():
    listed = (ROOT / "docs" / "README.md").read_text()
    for path in sorted((ROOT / "examples" / "recipes").glob("*")):
        assert f"../examples/recipes/{path.name}" in listed or path.name == "__pycache__"
        assert path.suffix != ".py" or len(path.read_text().splitlines()) < 40


def assert_the_demo_is_clean(printed: str) -> None:
    conversation, _, figures = printed.partition("\n\n")
    assert conversation.splitlines() == list(DEMO)
    assert figures.startswith("Notes: ['Buy stamps for Наталья']")


# And the checks themselves, shown something bad.


def test_blocks_of_a_page_share_names_and_errors_show_the_line():
    page = "# Title\n```python\nx = 1\n```\ntext\n```python\nassert x == 1\nraise KeyError(x)\n```\n"
    with pytest.raises(KeyError) as caught:
        run_page(page, "page.md")
    assert (caught.traceback[-1].path, caught.traceback[-1].lineno + 1) == ("page.md", 8)


@pytest.mark.parametrize("info", ["python no-run", "python3", "python title=x"])
def test_python_that_would_be_skipped_is_refused(info):
    with pytest.raises(AssertionError, match=r"page\.md:1"):
        run_page(f"```{info}\n1/0\n```\n", "page.md")


def test_dead_links_are_seen(tmp_path):
    (tmp_path / "here.md").touch()
    text = "[a](here.md) [b](here.md#part) [c](#part) [d](https://example.org) [e](gone.md)\n```text\n[f](code)\n```\n"
    assert dead_links(text, tmp_path) == ["gone.md"]


def test_make_targets_are_found_in_code_only():
    text = "make sure, `make lint`, and\n```sh\nmake demo\nmake test ARGS='-x'  # fast\n```\n"
    assert make_targets(text) == {"lint", "demo", "test"}
