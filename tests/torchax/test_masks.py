"""A mask's rule is known for what it is: causal, a window, or something that is evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.torchax.masks import MaskRule
from tests.torchax.torch_models import needs_torch

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]

MOST = 300


def test_causal_masks_and_windows_are_known():
    import torch
    from transformers.masking_utils import causal_mask_function, sliding_window_causal_mask_function

    assert MaskRule(causal_mask_function).window(torch, MOST) is None
    for length in (1, 2, 24, 128, MOST - 1):
        assert MaskRule(sliding_window_causal_mask_function(length)).window(torch, MOST) == length
    assert MaskRule(sliding_window_causal_mask_function(MOST)).window(torch, MOST) is None, "it hides nothing"


def test_other_rules_are_evaluated_and_those_that_look_ahead_are_refused():
    import torch
    from transformers.masking_utils import bidirectional_mask_function, chunked_causal_mask_function

    rule = MaskRule(chunked_causal_mask_function(20, torch.zeros(1, dtype=torch.long)))
    for padding in (torch.zeros(1, dtype=torch.long), torch.zeros(1, dtype=torch.long, device="meta")):
        with pytest.raises(ValueError, match=r"window|numbers that are not there"):
            MaskRule(chunked_causal_mask_function(20, padding)).window(torch, MOST)
    queries, keys = torch.tensor([[[19], [20], [47]]]), torch.arange(60)[None, None]
    at, key = np.array([19, 20, 47])[:, None], np.arange(60)[None]
    want = (key <= at) & (key // 20 == at // 20)
    assert np.array_equal(rule.visible(torch, queries, keys)[0].numpy(), want)
    with pytest.raises(UnsupportedModelError, match="looks ahead"):
        MaskRule(bidirectional_mask_function).window(torch, MOST)


def test_a_rule_is_no_tensor():
    rule = MaskRule(lambda *_: None)
    assert rule[:, :, :, :] is rule[:, :, slice(0, None), :] is rule
    for treat in (lambda: rule[:, :, :, :5], lambda: rule.dtype):
        with pytest.raises(UnsupportedModelError, match="changes the mask"):
            treat()
    assert not hasattr(rule, "shape")
