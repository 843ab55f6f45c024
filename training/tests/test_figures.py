"""The figures that the documentation gives of the embedded models are those of their examination."""

import re
from pathlib import Path

import pytest

from langchain_gemma_jax.models.configuration.embedded import embedded_folder

PAGE = Path(__file__).parents[2] / "docs" / "sprout.md"
ROWS = {
    "one call, every argument exact": "single call exact",
    "the right tool of eight": "right tool of 8",
    "no call when no tool fits": "no call when none fits",
    "a request of everyday life": "everyday request",
    "an unusual one": "unusual errand",
    "one errand for the sake of another": "two errands in a row",
    "an answer from a tool's result": "answer from result",
    "fields of a schema, by a call": "schema fields, as call",
    "the same as JSON of a schema": "schema fields, as JSON",
    "fields of a form as people write it, by a call": "form, as call",
    "the same as JSON of a form": "form, as JSON",
    "two calls, one after the other": "chain of two",
    "three calls": "chain of three",
    "the same tool twice at once": "parallel, same tool",
    "two tools at once": "parallel, two tools",
    "a corrected call after an error": "error: put right",
    "repeating what was said earlier": "remember",
    "the same, of what users say about themselves, with tools declared": "remember, beside tools",
    "a name or a wish in the system line": "system line",
    "the same beside tools": "system line, beside tools",
    "small talk, in the very words that it learned to answer with": "small talk",
    "a Chinese name in a call": "copy cjk",
    "a Cyrillic one": "copy cyrillic",
    "an Arabic one": "copy arabic",
}
"""What the page calls each skill, and what ``scores.md`` does."""


def scores(model):
    lines = (embedded_folder(model) / "scores.md").read_text().splitlines()[2:]
    cells = ([cell.strip() for cell in line.split("|")] for line in lines)
    return {name: int(right) / int(of) for _, name, right, of, *_ in cells}


@pytest.fixture(scope="module")
def both():
    return scores("sprout-s"), scores("sprout-m")


def test_the_table_is_that_of_the_examination(both):
    table = re.findall(r"^\| (\w.*) \| (\d+)% \| (\d+)% \|$", PAGE.read_text(), re.MULTILINE)
    wanted = [(said, *(round(100 * each[name]) for each in both)) for said, name in ROWS.items()]
    assert [(said, int(small), int(large)) for said, small, large in table] == wanted


def test_so_are_the_means_and_how_often_the_larger_one_is_ahead(both):
    small, large = both
    assert small.keys() == large.keys()
    found = re.search(
        r"Over all (\d+) skills `sprout-s` makes (\d+)% and `sprout-m` (\d+)%: the larger one is ahead in (\d+) of "
        r"them, and behind in (\d+)\.",
        " ".join(PAGE.read_text().split()),
    )
    assert found
    means = (round(100 * sum(each.values()) / len(each)) for each in both)
    ahead, behind = (sum(of[name] < beside[name] for name in small) for of, beside in ((small, large), (large, small)))
    assert tuple(map(int, found.groups())) == (len(small), *means, ahead, behind)
