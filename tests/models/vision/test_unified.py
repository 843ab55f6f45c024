"""Projections without a tower, of pictures and of sounds, held to transformers'."""

from __future__ import annotations

import pytest

from tests.models.vision.soft_tokens import check_heard, check_soft_tokens

NAME = "gemma-4-12b-unified"


@pytest.mark.long
def test_soft_tokens_and_answers_are_those_of_transformers_for_ten_models(tmp_path):
    check_soft_tokens(NAME, tmp_path)


@pytest.mark.long
def test_what_is_heard_is_what_transformers_hears(tmp_path):
    check_heard(NAME, tmp_path)
