"""A file of objectives: what it may say, and what it hears with the line if it says something else."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.engine.base.metrics import LATENCIES
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.observe.files import OBJECTIVES, text_of
from langchain_gemma_jax.observe.files.objectives import BOUNDS, KINDS, objectives_of, read_objectives


def test_the_ones_that_come_with_the_package():
    found = objectives_of(text_of(OBJECTIVES), OBJECTIVES)
    goals = {each.name: each.percent for each in found.all}
    assert set(goals) == set(KINDS)
    assert (goals["availability"], goals["cold_starts"], goals["cache_hits"]) == (99.9, 99, 95)
    assert (goals["utilization"], goals["device_memory"]) == (60, 80)
    assert [each.within for each in found.all if each.name == "first_token"] == [1.0]
    assert {each.name for each in found.all if each.pages} == {"availability", "steady_first_token"}
    assert set(BOUNDS) <= set(LATENCIES)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("\n[availabilty]\ngoal = 99\n", 2, r"expected one of availability, .*at_least, found 'availabilty'"),
        (
            "[availability]\ngoal = 100\n",
            2,
            r"\[availability\] goal: expected percent above 0 and below 100, found 100",
        ),
        ("[availability]\n\ngoal = 'high'\n", 3, "expected percent above 0 and below 100, found 'high'"),
        ("[availability]\ngoal = nan\n", 2, "expected percent above 0 and below 100, found nan"),
        ("[availability]\ngaol = 99\n", 2, r"\[availability\]: expected goal, pages, by, found 'gaol'"),
        ("# none\n[cache_hits]\n", 2, r"\[cache_hits\]: expected goal = \.\.\., found nothing of that name"),
        ("[cache_hits]\ngoal = 9\nby = ['model']\n", 3, "expected goal, pages, found 'by'"),
        ("[availability]\ngoal = 9\nby = ['app']\n", 3, r"by: expected a list of model, found \['app'\]"),
        (
            "[first_token]\ngoal = 9\nwithin = 0.3\n",
            3,
            r"expected a bound of the histogram, 0\.1, 0\.2, .*, found 0\.3",
        ),
        ("[first_token]\ngoal = 9\n", 1, r"expected within = \.\.\."),
        ("[availability]\ngoal = 9\npages = 1\n", 3, "pages: expected true or false, found 1"),
        ("[utilization]\nleast = 60\npages = true\n", 3, r"\[utilization\]: expected least, found 'pages'"),
        ("availability = 99\n", 1, r"expected a table \[availability\] with goal, pages, by, found 99"),
        ("at_least = -1\n", 1, "at_least: expected a number above 0, found -1"),
    ],
)
def test_what_is_not_possible_is_told_with_what_is_and_its_line(text, line, said):
    with pytest.raises(InputError, match=f"my.toml, line {line}: .*{said}"):
        objectives_of(text, "my.toml")


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    with pytest.raises(InputError, match="expected a file of objectives: No such file"):
        read_objectives(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[availability\n")
    with pytest.raises(InputError, match=r"bad\.toml: expected TOML: .*line 1"):
        read_objectives(tmp_path / "bad.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match="it is no text in UTF-8"):
        read_objectives(tmp_path / "bytes.toml")


def test_damaged_files_are_errors_of_ours_and_nothing_else():
    rng, text = random.Random(64), text_of(OBJECTIVES)
    refused = 0
    for _ in range(400):
        at, count = rng.randrange(len(text)), rng.randrange(1, 6)
        damaged = text[:at] + "".join(rng.choice("[]=\"'1.\n #x") for _ in range(count)) + text[at + count :]
        try:
            objectives_of(damaged, "f")
        except InputError:
            refused += 1
    assert refused > 50
