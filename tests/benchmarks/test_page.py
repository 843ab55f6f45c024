from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.page import BEGIN, END, replace_block


def test_only_the_block_is_replaced():
    page = f"# Title\n{BEGIN}\nold\n{END}\nafter\n"
    once = replace_block(page, "new\n")
    assert once == f"# Title\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert replace_block(once, "new\n") == once


@pytest.mark.parametrize("page", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_a_page_without_its_markers_is_refused(page):
    with pytest.raises(ValueError, match="expected one line"):
        replace_block(page, "new")


def test_the_page_on_benchmarks_has_the_block_filled():
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    block = page.partition(BEGIN)[2].partition(END)[0]
    assert "| work | weights | ours |" in block
    assert replace_block(page, block) == page
