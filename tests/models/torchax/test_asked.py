"""Options that mean nothing for models of transformers are refused."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.loading.load import load


@pytest.mark.parametrize("option", [{"weights": "int8"}, {"activations": "int8"}])
def test_options_that_mean_nothing_there_are_refused(option, tmp_path):
    with pytest.raises(InputError, match=r'a model "torchax:\.\.\." takes none'):
        load(f"torchax:{tmp_path}", **option)
