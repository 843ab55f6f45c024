"""The figures that the documentation gives of the embedded models are those of their examination."""

import re
from pathlib import Path

import pytest

from langchain_gemma_jax.models.configuration.embedded import embedded_folder

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
ROWS = {
    "one call, every argument exact": "single call exact",
    "the right tool of eight": "right tool of 8",
    "no call when no tool fits": "no call when none fits",
    "an answer from a tool's result": "answer from result",
    "two calls, one after the other": "chain of two",
    "schema fields, as JSON": "schema fields, as JSON",
    "everyday requests": "everyday request",
}
"""The page's name of each skill, and that of ``scores.md``."""


def scores(model):
    lines = (embedded_folder(model) / "scores.md").read_text().splitlines()[2:]
    cells = ([cell.strip() for cell in line.split("|")] for line in lines)
    return {name: int(right) / int(of) for _, name, right, of, *_ in cells}


@pytest.fixture(scope="module")
def both():
    return scores("sprout-s"), scores("sprout-m")


def test_the_table_is_that_of_the_examination(both):
    table = re.findall(r"^\| (\w.*) \| (\d+)% \| (\d+)% \|$", PAGE.read_text(), re.MULTILINE)
    assert both[0].keys() == both[1].keys()
    rows = [(shown, *(round(100 * each[name]) for each in both)) for shown, name in ROWS.items()]
    means = [round(100 * sum(each.values()) / len(each)) for each in both]
    expected = [*rows, (f"all {len(both[0])} skills", *means)]
    assert [(shown, int(small), int(large)) for shown, small, large in table] == expected
