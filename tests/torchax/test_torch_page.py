"""The programs of docs/torchax.md and of a notebook run as they are."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from tests.own_engine import own_engine
from tests.torchax.test_classify import save_classifier
from tests.torchax.torch_models import needs_torch, save_model

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]

PAGE = Path(__file__).parents[2] / "docs" / "torchax.md"
FENCED = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
NOTEBOOK = PAGE.parents[1] / "examples" / "torchax.ipynb"
BLOCKS = [block for block in FENCED if block.startswith(("import", "from"))]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in ("my-llama", "my-sentiments"):
        (folder / name).mkdir()
    save_model(folder / "my-llama", "llama 3")
    save_classifier(folder / "my-sentiments", "an encoder")
    return folder


def test_there_are_five_doors():
    assert len(BLOCKS) == 5


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_runs(block, here, monkeypatch):
    monkeypatch.chdir(here)
    with own_engine():
        exec(compile(block, str(PAGE), "exec"), {})  # our own page


def test_the_notebook_runs(capfd):
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert all(not cell.get("outputs") for cell in cells), "a notebook is kept without outputs"
    said = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert {"**pytree**", "`jax.jit`", "**static**"} <= set(re.findall(r"\*\*\w+\*\*|`[\w.]+`", said))
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    with own_engine():
        exec(compile("\n".join([*code, "assert '<svg' in engine().report()._repr_html_()"]), str(NOTEBOOK), "exec"), {})
    shown = capfd.readouterr().out
    lengths = [line.removeprefix("traced for ") for line in shown.splitlines() if line.startswith("traced for")]
    assert lengths == ["(1, 4)", "(1, 5)", "(1, 6)", "(1, 7)", "(1, 4)", "(1, 1)"], "each shape once"
    assert "20 tokens, by one program" in shown
    assert shown.count("good") + shown.count("bad") >= 4


def test_the_guards_catch_what_a_torch_module_is_asked_wrongly(capfd):
    runpy.run_path(str(PAGE.parents[1] / "examples" / "guard_torch.py"), run_name="__main__")
    said = capfd.readouterr().out
    for mode in ("recompile", "transfer", "residency", "cold_start"):
        assert f"{mode} guard:" in said
    assert "nothing" not in said
