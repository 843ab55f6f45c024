"""The memory of engines, while a user looks at it."""

from __future__ import annotations

import os

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.engine.residency.status_file import StatusFile
from tests.engine.residency.test_status_file import STATUS


def test_status_files_of_other_versions_are_shown_as_such(own, capsys):
    boards = [StatusFile(), StatusFile(), StatusFile()]
    for board in boards:
        board.show([STATUS])
    texts = ('{"format": 99, "version": "7.0\\u001b[2J"}', '[{"name": "./a"}]', None)
    for file, text in zip(sorted((own / "running").glob("*.json")), texts, strict=True):
        if text is not None:
            with file.open("r+") as opened:  # the same file, which its engine holds
                opened.truncate(0)
                opened.write(text)
    assert main(["top"]) == 0
    top = capsys.readouterr().out
    assert main(["models"]) == 0
    for shown in (top, capsys.readouterr().out):
        assert f"process {os.getpid()}: its status was written by version 7.0" in " ".join(shown.split())
        assert "written by another version of this package" in " ".join(shown.split())
        assert "./a" in shown
        assert "\x1b" not in shown
    for board in boards:
        board.take_down()
