from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.running.page import ENGINE, FORWARD, Block, replace_block

BLOCK = Block("figures", "a program")
BEGIN, END = BLOCK.begin, BLOCK.end
PAGE = (Path(__file__).parents[3] / "benchmarks" / "figures.md").read_text()


def test_only_the_block_is_replaced():
    page = f"# Title\n{BEGIN}\nold\n{END}\nafter\n"
    once = replace_block(page, "new\n", BLOCK)
    assert once == f"# Title\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert replace_block(once, "new\n", BLOCK) == once


@pytest.mark.parametrize("page", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_a_page_without_its_markers_is_refused(page):
    with pytest.raises(ValueError, match="expected one line"):
        replace_block(page, "new", BLOCK)


@pytest.mark.parametrize("block", [FORWARD, ENGINE])
def test_the_page_on_benchmarks_has_a_block_for_each_benchmark(block):
    text = PAGE.partition(block.begin)[2].partition(block.end)[0]
    assert replace_block(PAGE, text, block) == PAGE


def test_the_figures_of_the_forward_pass_are_there():
    assert "| work | weights | ours |" in PAGE.partition(FORWARD.begin)[2].partition(FORWARD.end)[0]
