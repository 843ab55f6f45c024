"""What docs/torchax.md shows for a program of one's own runs as it stands."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.torchax.test_classify import save_classifier
from tests.torchax.torch_models import needs_torch, save_model

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]

PAGE = Path(__file__).parents[2] / "docs" / "torchax.md"
FENCED = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
BLOCKS = [block for block in FENCED if block.startswith(("import", "from"))]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in ("my-llama", "my-sentiments"):
        (folder / name).mkdir()
    save_model(folder / "my-llama", "llama 3")
    save_classifier(folder / "my-sentiments", "an encoder")
    return folder


def test_there_are_four_doors():
    assert len(BLOCKS) == 4


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_runs(block, here, monkeypatch):
    monkeypatch.chdir(here)
    exec(compile(block, str(PAGE), "exec"), {})  # our own page


def test_the_guards_catch_what_a_torch_module_is_asked_wrongly(capfd):
    runpy.run_path(str(PAGE.parents[1] / "examples" / "guard_torch.py"), run_name="__main__")
    said = capfd.readouterr().out
    for mode in ("recompile", "transfer", "residency", "cold_start"):
        assert f"{mode} guard:" in said
    assert "nothing" not in said
