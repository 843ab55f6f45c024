"""The diagrams of the documentation are those that the code draws, and each is on a page."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from scripts.diagrams import DIAGRAMS, FOLDER, WIDTH

ROOT = Path(__file__).parents[1]
PAGES = "\n".join(page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))


def test_there_are_no_others():
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(DIAGRAMS)


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_drawn_anew_and_shown(name):
    drawn = DIAGRAMS[name]()
    assert (FOLDER / f"{name}.svg").read_text() == drawn, "run python scripts/diagrams.py"
    assert f"images/{name}.svg)" in PAGES
    for box in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}rect"):
        assert float(box.get("x", 0)) + float(box.get("width")) <= WIDTH
