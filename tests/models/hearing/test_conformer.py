"""Gemma 4's encoder of sounds, held to transformers'."""

from __future__ import annotations

import pytest

from tests.models.vision.soft_tokens import check_heard


@pytest.mark.long
def test_what_is_heard_is_what_transformers_hears(tmp_path):
    check_heard("gemma-4-e4b-vision", tmp_path)
