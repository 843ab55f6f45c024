"""Each family's model, through torchax and by torch."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.models.loading.load import load
from tests.torchax.torch_models import FAMILIES, save_model


@pytest.fixture(scope="module", params=list(FAMILIES))
def both(request, tmp_path_factory):
    """A model through torchax, and torch's."""
    folder = tmp_path_factory.mktemp("torch-model")
    module = save_model(folder, request.param)
    with load(f"torchax:{folder}") as model:
        yield model, module
