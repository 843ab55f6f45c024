from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.engine.device.knobs import MAX_BIASES, UNUSED, Knobs, knobs, stack


def test_plain_values_become_small_arrays_that_can_be_read_by_name():
    made = knobs(
        seed=2**32 * 5 + 7,
        prompt_length=11,
        temperature=0.5,
        top_k=40,
        top_p=0.75,
        min_p=0.125,
        repetition=1.5,
        presence=0.25,
        frequency=-0.5,
        logit_bias={3: -100, 9: 2.5},
        logprobs=True,
        masked=True,
    )
    assert made.named_floats()._asdict() == {
        "temperature": 0.5, "top_p": 0.75, "min_p": 0.125, "repetition": 1.5, "presence": 0.25, "frequency": -0.5,
    }  # fmt: skip
    assert made.named_ints()._asdict() == {"top_k": 40, "prompt_length": 11, "logprobs": 1, "masked": 1, "biases": 2}
    assert made.seed.tolist() == [5, 7]
    assert dict(zip(made.bias_ids[:2].tolist(), made.bias_values[:2].tolist(), strict=True)) == {3: -100, 9: 2.5}
    assert set(made.bias_ids[2:].tolist()) == {UNUSED}
    kinds = {name: (array.dtype.name, array.shape) for name, array in vars(made).items()}
    assert kinds == {
        "floats": ("float32", (6,)),
        "ints": ("int32", (5,)),
        "seed": ("uint32", (2,)),
        "bias_ids": ("int32", (MAX_BIASES,)),
        "bias_values": ("float32", (MAX_BIASES,)),
    }
    assert all(isinstance(array, np.ndarray) for array in vars(made).values())  # the caller moves them


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63, 2**64 - 1, 2**64 + 3, -(2**70) - 1])
def test_a_seed_counts_modulo_two_to_the_64(seed):
    high, low = knobs(seed=seed, prompt_length=0).seed.tolist()
    assert high * 2**32 + low == seed % 2**64


@pytest.mark.parametrize("bias", [{-1: 1.0}, {UNUSED: 1.0}, dict.fromkeys(range(MAX_BIASES + 1), 1.0)])
def test_a_bias_that_does_not_fit_is_refused(bias):
    with pytest.raises(ValueError, match="logit_bias takes up to 512 token ids"):
        knobs(seed=0, prompt_length=0, logit_bias=bias)


@pytest.mark.parametrize("temperature", [1e-45, 1e-39, 1e-300])
def test_a_temperature_below_the_normal_floats_is_0(temperature):
    assert knobs(seed=0, prompt_length=0, temperature=temperature).floats[0] == 0


def test_all_the_biases_fit():
    made = knobs(seed=0, prompt_length=0, logit_bias=dict.fromkeys(range(MAX_BIASES), 1.0))
    assert made.bias_ids.tolist() == list(range(MAX_BIASES))


def test_stacking_gives_every_array_a_row_axis():
    batch = stack([knobs(seed=seed, prompt_length=seed) for seed in range(3)])
    assert isinstance(batch, Knobs)
    assert batch.seed.tolist() == [[0, 0], [0, 1], [0, 2]]
    assert batch.bias_ids.shape == (3, MAX_BIASES)
