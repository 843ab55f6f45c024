"""Every format is the published template's, byte for byte. ``tests/goldens_dialects/make.py`` made the goldens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dialects.cases import DIALECTS, render
from tests.goldens_dialects.corpus import CONVERSATIONS

GOLDENS = json.loads((Path(__file__).parents[1] / "goldens_dialects" / "goldens.json").read_text("utf-8"))
EACH = [(name, title) for title, case in CONVERSATIONS.items() for name in case.formats]


@pytest.mark.parametrize(("name", "title"), EACH, ids=lambda value: value.replace(" ", "_"))
def test_a_prompt_is_what_the_published_template_makes(name, title):
    assert render(name, CONVERSATIONS[title]).text == GOLDENS["texts"][title][name]


def test_there_is_a_golden_for_each_conversation_and_no_other():
    stored = {(name, title) for title, texts in GOLDENS["texts"].items() for name in texts}
    assert stored == set(EACH)
    assert len(CONVERSATIONS) >= 60
    assert {name for name, _ in EACH} == set(DIALECTS)
