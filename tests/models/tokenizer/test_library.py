"""Errors of two libraries, and breakages of one, are errors of this package."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import TokenizerError
from langchain_gemma_jax.models.tokenizer.library import only_tokenizer_errors


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_ctrl_c_is_not_an_error_of_the_file(tmp_path, error):
    with pytest.raises(error), only_tokenizer_errors(tmp_path, "a tokenizer"):
        raise error


def test_long_messages_of_a_library_are_cut(tmp_path):
    with pytest.raises(TokenizerError) as raised, only_tokenizer_errors(tmp_path, "a tokenizer"):
        raise ValueError("x\n" * 10_000)
    assert len(raised.value.found) < 250
    assert "\n" not in raised.value.found
