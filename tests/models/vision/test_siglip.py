"""Gemma 3's tower, held to transformers'."""

from __future__ import annotations

import pytest

from tests.models.vision.soft_tokens import check_soft_tokens


@pytest.mark.long
def test_soft_tokens_and_answers_are_those_of_transformers_for_ten_models(tmp_path):
    check_soft_tokens("gemma-3-4b-vision", tmp_path)
