"""Text for terminals, pipes and files."""

from __future__ import annotations

from dataclasses import replace

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.cli.terminal import output
from langchain_gemma_jax.engine.residency.status_file import StatusFile
from tests.cli.terminal import Terminal
from tests.engine.residency.test_status_file import STATUS


def test_terminals_without_utf8_or_colors_get_what_they_can_show(own, monkeypatch):
    board = StatusFile()
    board.show([replace(STATUS, name="./größe\x1b]0;x\x07")])
    with Terminal((80, 24), "ascii") as terminal:
        assert main(["top", "--once"]) == 0
        assert "./gr??e?]0;x?" in terminal.take()
    monkeypatch.setenv("NO_COLOR", "1")
    with Terminal((80, 24)) as terminal:
        assert main(["top", "--times", "1"]) == 0
        assert "\x1b" not in terminal.raw
    board.take_down()


def test_printable_keeps_words_and_drops_what_steers():
    assert output.printable("größe\t1\n\x1b[2J\x07\u202e") == "größe\t1\n�[2J��"
    assert output.fitted("a\nbcdefgh", 6) == "a b..."


def test_wide_characters_take_two_columns_and_accents_none():
    assert output.fitted("模型模型", 8) == "模型模型"
    assert output.fitted("模型模型", 7) == "模型..."
    assert output.fitted("e\u0301" * 4, 4) == "e\u0301" * 4
    assert [output.fitted("abcd", columns) for columns in (0, 1, 2, 3)] == ["", ".", "..", "..."]
