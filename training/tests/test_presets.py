"""The runs that make the embedded models."""

import sys
from collections import Counter
from pathlib import Path

import pytest

import training.__main__
from langchain_gemma_jax.models.configuration.embedded import embedded_folder
from training.configs import CONTEXT, HF_CONFIGS
from training.data.stream import LONGER
from training.presets import RUNS, preset
from training.train import Settings

TRAINING = Path(__file__).parents[1] / "docs" / "training.md"


@pytest.mark.parametrize("run", RUNS)
def test_presets_are_whole_settings_with_rows_as_long_as_the_context(run):
    settings = Settings(**preset(run))
    assert settings.steps * settings.step_tokens == pytest.approx(settings.tokens, rel=0.01)
    assert settings.length * min(LONGER, settings.rows) <= CONTEXT
    assert settings.rows % min(LONGER, settings.rows) == 0


def test_what_a_model_begins_as_is_beside_it_or_comes_with_the_package(tmp_path):
    assert preset("sprout-m", tmp_path)["grown_from"] == str(tmp_path / "sprout-s")
    assert preset("sprout-m-on", tmp_path)["grown_from"] == str(tmp_path / "sprout-m")
    assert preset("sprout-m")["grown_from"] == str(embedded_folder("sprout-s"))
    assert "grown_from" not in preset("sprout-s", tmp_path)


def test_how_many_runs_there_are_is_what_is_said():
    words = {5: "five", 8: "eight", 13: "thirteen"}
    of = Counter(preset(run)["model"] for run in RUNS)
    card, page = (embedded_folder("sprout-s").parent / "README.md").read_text(), TRAINING.read_text()
    assert f"sprout-s is made in {words[of['sprout-s']]} runs and sprout-m in {words[of['sprout-m']]}." in card
    assert f"both: {words[len(RUNS)]} runs" in page


def test_the_page_says_what_each_run_reads():
    rows = [line for line in TRAINING.read_text().splitlines() if line.startswith("| `sprout-")]
    wanted = []
    for run in RUNS:
        settings = Settings(**preset(run))
        begins = Path(settings.grown_from).name or "nothing"
        read, kept = f"{settings.tokens / 1e6:g} million", f"{settings.kept_share:.0%}"
        wanted.append(f"| `{run}` | {settings.model} | {begins} | {read} | {settings.stage} | {kept} |")
    assert rows == wanted


def test_no_two_runs_read_the_same():
    assert len({preset(run)["seed"] for run in RUNS}) == len(RUNS)


def test_each_run_begins_as_what_was_made_before_it(monkeypatch, tmp_path):
    runs, made = [], []

    def make(run, folder, settings, **_):
        assert folder == tmp_path / "models" / settings.model
        assert not settings.grown_from or settings.grown_from in made
        folder.mkdir(parents=True, exist_ok=True)
        runs.append(run)
        made.append(str(folder))

    monkeypatch.setattr(training.__main__, "make", make)
    monkeypatch.setattr(training.__main__, "examine", lambda *_: "| scores |")
    monkeypatch.setattr(sys, "argv", ["training", str(tmp_path / "runs"), str(tmp_path / "models")])
    training.__main__.main()
    assert runs == [tmp_path / "runs" / run for run in RUNS]
    assert {preset(run)["model"] for run in RUNS} == set(HF_CONFIGS)
    for name in HF_CONFIGS:
        assert (tmp_path / "models" / name / "scores.md").read_text() == "| scores |"
