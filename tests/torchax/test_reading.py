"""Weights of torch's formats are read without a second copy of them."""

from __future__ import annotations

import gc

import pytest

from langchain_gemma_jax.models.loading.load import load
from tests.torchax.torch_models import needs_torch, save_model

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_no_second_copy_of_the_weights_stays(tmp_path):
    import torch

    def held():
        gc.collect()
        known = (each for each in gc.get_objects() if type(each) in {torch.Tensor, torch.nn.Parameter})
        return {id(each): each.numel() for each in known if each.device.type == "cpu"}

    module = save_model(tmp_path, "llama 3")
    most = max(parameter.numel() for parameter in module.parameters())
    before = held()  # torch's own model, which the other tests compare with
    with load(f"torchax:{tmp_path}") as model:
        assert model.nbytes > 4 * most
        assert max((size for key, size in held().items() if key not in before), default=0) < most // 4
    assert module is not None
