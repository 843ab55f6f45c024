from __future__ import annotations

import random

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.device.knobs import MAX_BIASES, NUMBERS, UNUSED, knobs, packed, unpacked


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


def test_rows_that_were_packed_come_back_bit_by_bit():
    random_of = random.Random(3)

    def number(least: float, most: float) -> float:
        return random_of.choice([least, most, random_of.uniform(least, most)])

    for rows in (1, 3, 8):
        made = [
            knobs(
                seed=random_of.getrandbits(64),
                prompt_length=random_of.randrange(2**31),
                temperature=number(0, 1e30),
                top_k=random_of.randrange(2**31),
                top_p=number(0, 1),
                min_p=number(0, 1),
                repetition=number(1e-3, 9),
                presence=number(-2, 2),
                frequency=number(-0.0, 2),
                logit_bias={
                    random_of.randrange(UNUSED): number(-100, 100) for _ in range(random_of.randrange(600) % 513)
                },
                logprobs=random_of.randrange(4),
                masked=random_of.random() < 0.5,
            )
            for _ in range(rows)
        ]
        bits = np.stack([packed(one) for one in made])
        assert (bits.dtype, bits.shape) == (np.uint32, (rows, NUMBERS))
        found = jax.device_get(jax.jit(unpacked)(bits))
        for name, array in vars(found).items():
            wanted = np.stack([np.asarray(getattr(one, name)) for one in made])
            assert array.dtype == wanted.dtype
            assert array.tobytes() == wanted.tobytes(), name
