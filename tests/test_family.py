"""The page of the family has every kind of Gemma that transformers knows, and what opens it or is said instead."""

from __future__ import annotations

from langchain_gemma_jax.models.configuration.hf_config import OTHER_GEMMAS
from scripts.family_page import ABOUT, PAGE, types, what_is_said, written


def test_the_page_is_what_the_code_does():
    page = PAGE.read_text()
    assert page == written(page), "run python scripts/family_page.py"
    assert set(ABOUT) == {kind for kind in types() if what_is_said(kind) is None}


def test_each_kind_that_does_not_open_is_refused_by_its_name_in_one_plain_sentence():
    refused = {kind: said for kind in types() if (said := what_is_said(kind)) is not None}
    assert len(refused) > 10
    for kind, said in refused.items():
        assert "Models of other families" not in said, kind
        assert "Use a Gemma" in said or "Give the folder" in said or "name this one in drafter=" in said, kind
    names = {kind.replace("_", "") for kind in refused}
    for kind, said in OTHER_GEMMAS.items():
        assert said.partition(" is not ")[0].replace(" ", "").lower() == kind
        assert any(name.startswith(kind) for name in names), f"{kind} is no kind that transformers has"
