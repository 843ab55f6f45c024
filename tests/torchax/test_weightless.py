"""A module is built without memory for weights, and with numbers where its code asks for them."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.models.torchax.weightless import weightless
from tests.torchax.torch_models import needs_torch

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_weights_have_no_memory_and_numbers_are_real():
    import torch

    class Asking(torch.nn.Module):
        def __init__(self):
            super().__init__()
            rates = [rate.item() for rate in torch.linspace(0, 0.3, 4)]
            self.layers = torch.nn.ModuleList(torch.nn.Linear(1 << 16, 1 << 16) for rate in rates if rate > 0.05)
            self.experts = torch.nn.Parameter(torch.zeros(64, 1 << 12, 1 << 12))
            self.slopes = torch.full((4,), 0.5)
            self.size = int(torch.ones(3, 3).sum())

    with weightless(torch):
        module = Asking()
    assert (len(module.layers), module.size) == (3, 9)
    assert {parameter.device.type for parameter in module.parameters()} == {"meta"}
    assert module.slopes.tolist() == [0.5] * 4
    with pytest.raises(RuntimeError, match="meta tensors"), torch.device("meta"):
        Asking()
