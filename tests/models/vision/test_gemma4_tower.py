"""Gemma 4's tower, held to transformers'."""

from __future__ import annotations

import pytest

from tests.models.vision.soft_tokens import check_soft_tokens


@pytest.mark.long
@pytest.mark.parametrize("name", ["gemma-4-e4b-vision", "gemma-4-31b-vision"])
def test_soft_tokens_and_answers_are_those_of_transformers_for_ten_models(name, tmp_path):
    check_soft_tokens(name, tmp_path)
