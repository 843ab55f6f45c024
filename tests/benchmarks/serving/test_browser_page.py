"""The benchmark of the page, as short as it can be: by a real browser and a small model."""

from __future__ import annotations

import json

import pytest

from benchmarks.serving import browser_page
from tests.own_engine import own_engine


@pytest.mark.slow
def test_a_visit_and_a_pair_are_measured(tmp_path, capsys):
    file = tmp_path / "found.json"
    small = ["--model", "sprout-s", "--visits", "1", "--pairs", "1", "--tokens", "40", "--json", str(file)]
    with own_engine():
        assert browser_page.main(small) in {0, 1}  # which depends on the machine
    rows = json.loads(file.read_text())["bars"]
    assert [row["work"] for row in rows] == ["first visit to first token", "a step with the page open"]
    assert "1 visits: a question is taken after" in capsys.readouterr().out
