"""Makes both embedded models: trains, exports and examines them.

    python -m training runs models/sprout

Runs that were stopped go on, runs that are done are not repeated. Each model's folder gets its weights, the
loss as a picture, and its scores as a table.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from training import checkpoints
from training.chat_player import ChatPlayer
from training.configs import HF_CONFIGS
from training.evaluate import FINAL, evaluate, report
from training.export import export
from training.memory import begin_anew_with_large_pages, keep_what_is_freed
from training.presets import RUNS, preset
from training.train import CHECKPOINT, Settings, default_workers, kept, train


def make(run: Path, folder: Path, settings: Settings, *, workers: int) -> None:
    """Train one run to its end, if that is not done, and export its model."""
    if not (run / CHECKPOINT).exists() or checkpoints.read_progress(run / CHECKPOINT).step < settings.steps:
        train(settings, run, workers=workers)
    export(kept(run)[0], settings.model, run / "tokenizer", folder)
    shutil.copyfile(run / "loss.svg", folder / "loss.svg")


def examine(folder: Path, each: int) -> str:
    """The scores of the model in this folder as a table."""
    return report(list(evaluate(ChatPlayer(folder), each, FINAL)))


def main() -> None:
    """Make both embedded models."""
    keep_what_is_freed()
    parser = argparse.ArgumentParser(prog="python -m training", description=main.__doc__)
    parser.add_argument("runs", type=Path, help="where training keeps its checkpoints")
    parser.add_argument("folder", type=Path, help="where the models go")
    parser.add_argument("--each", type=int, default=200, help="conversations a skill in the examination")
    arguments = parser.parse_args()
    for run in RUNS:
        settings = Settings(**preset(run, arguments.folder))
        make(arguments.runs / run, arguments.folder / settings.model, settings, workers=default_workers())
    for name in HF_CONFIGS:
        table = examine(arguments.folder / name, arguments.each)
        (arguments.folder / name / "scores.md").write_text(table)
        sys.stdout.write(f"{name}\n{table}")


if __name__ == "__main__":
    begin_anew_with_large_pages()
    main()
