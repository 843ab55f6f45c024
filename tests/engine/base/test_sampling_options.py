from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from langchain_gemma_jax.engine.base.sampling_options import LARGEST_ID, LARGEST_INT, MAX_LOGIT_BIASES, Sampling
from langchain_gemma_jax.engine.device.knobs import MAX_BIASES, UNUSED, knobs
from langchain_gemma_jax.engine.device.sampling import TOP_LOGPROBS
from langchain_gemma_jax.errors import InputError

NAN, INF = math.nan, math.inf
ODD = [-(2**63), -1, 0, 1, 2**63, 2**64, INF, -INF, NAN, True, "1", None, 10**5000, 2 + 0j, [1]]

# Option: the largest legal value, the next one that is not, and which of the odd values are legal.
NUMBERS = {
    "temperature": (100, math.nextafter(100, 101), [0, 1]),
    "top_k": (2**31 - 1, 2**31, [0, 1]),
    "top_p": (1, math.nextafter(1, 2), [1]),
    "min_p": (math.nextafter(1, 0), 1.0, [0]),
    "repetition_penalty": (100, math.nextafter(100, 101), [1]),
    "presence_penalty": (100, math.nextafter(100, 101), [-1, 0, 1]),
    "frequency_penalty": (100, math.nextafter(100, 101), [-1, 0, 1]),
    "seed": (2**64 - 1, 2**64, [-(2**63), -1, 0, 1, 2**63, None]),
    "max_tokens": (2**31 - 1, 2**31, [1, None]),
    "top_logprobs": (20, 21, [0, 1]),
}


def sampling(**options):
    return Sampling(**options, logprobs=True)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_in_its_range_or_the_error_says_what_it_may_be(name):
    largest, more, legal = NUMBERS[name]
    for value in [largest, *legal]:
        assert getattr(sampling(**{name: value}), name) == (value % 2**64 if name == "seed" and value else value)
    refused = [odd for odd in ODD if not any(odd is each or (odd == each and odd is not True) for each in legal)]
    assert len(refused) + len(legal) == len(ODD)
    for value in [more, *refused]:
        with pytest.raises(InputError, match=rf"^{name}: expected a (whole )?number .*, found ") as caught:
            sampling(**{name: value})
        assert len(str(caught.value)) < 250


@pytest.mark.parametrize("name", NUMBERS)
def test_numpy_scalars_are_numbers_and_its_booleans_are_not(name):
    value = getattr(sampling(**{name: np.int64(1) if name != "min_p" else np.float32(0.5)}), name)
    assert type(value) in {int, float}
    with pytest.raises(InputError, match=name):
        sampling(**{name: np.True_})


@pytest.mark.parametrize("name", ["top_k", "seed", "max_tokens", "top_logprobs"])
def test_a_fraction_is_no_whole_number(name):
    with pytest.raises(InputError, match=rf"{name}: expected a whole number"):
        sampling(**{name: 1.0})


def test_floats_are_floats_afterwards():
    assert type(Sampling(temperature=1).temperature) is float
    assert Sampling(temperature=Fraction(1, 4)).temperature == 0.25
    with pytest.raises(InputError, match=r"min_p: expected a number from 0 to below 1"):
        Sampling(min_p=Fraction(10**30 - 1, 10**30))  # below 1, and 1.0 as a float


def test_a_penalty_survives_float32():
    for penalty in (0.0, 1e-300, 5e-324):
        with pytest.raises(InputError, match="repetition_penalty"):
            Sampling(repetition_penalty=penalty)
    assert np.float32(Sampling(repetition_penalty=1e-30).repetition_penalty) > 0


def test_a_seed_counts_modulo_two_to_the_64():
    assert Sampling(seed=-1) == Sampling(seed=2**64 - 1)
    assert Sampling(seed=-(2**63)).seed == 2**63
    assert Sampling(seed=None).seed is None


@pytest.mark.parametrize("name", ["ignore_eos", "logprobs", "drafts"])
@pytest.mark.parametrize("value", [0, 1, None, "no", np.True_])
def test_a_switch_is_true_or_false(name, value):
    with pytest.raises(InputError, match=f"{name}: expected True or False"):
        Sampling(**{name: value})


def test_the_best_logprobs_need_logprobs():
    with pytest.raises(InputError, match=r"top_logprobs=2 needs logprobs=True"):
        Sampling(top_logprobs=2)
    assert Sampling(top_logprobs=2, logprobs=True).top_logprobs == 2


def test_stops_are_a_tuple():
    assert Sampling(stop="\n").stop == Sampling(stop=["\n"]).stop == ("\n",)
    assert Sampling(stop_ids=[np.int32(3), 1]).stop_ids == (3, 1)
    assert len(Sampling(stop=["a"] * 64, stop_ids=[0] * 64).stop) == 64
    assert len(Sampling(stop="é" * 1024).stop[0]) == 1024


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        ("", r"stop\[0\]: expected a str of 1 to 1024 characters, found ''"),
        (["a", ""], r"stop\[1\]"),
        (["a", 1], r"stop\[1\]: .*found 1"),
        ("a" * 1025, r"stop\[0\]"),
        (["a"] * 65, "stop: .*at most 64, found 65"),
        (None, r"stop: .*pass \(\), for none"),
        ({"a"}, "stop: expected"),
        (b"a", "stop: expected"),
    ],
)
def test_impossible_stops(stop, message):
    with pytest.raises(InputError, match=message):
        Sampling(stop=stop)


@pytest.mark.parametrize("ids", [[-1], [2**31 - 1], [True], ["1"], [1.0], None, "12", b"12", 7, [0] * 65])
def test_impossible_stop_ids(ids):
    with pytest.raises(InputError, match="stop_ids"):
        Sampling(stop_ids=ids)


def test_biases_are_numbers_by_token_id():
    bias = Sampling(logit_bias={np.int64(9): np.float32(1.5), 2: -100}).logit_bias
    assert dict(bias) == {2: -100.0, 9: 1.5}
    assert list(bias) == [2, 9]
    assert bias[9] == 1.5
    with pytest.raises(KeyError):
        bias[3]
    assert len(Sampling(logit_bias=dict.fromkeys(range(512), 1)).logit_bias) == 512


@pytest.mark.parametrize(
    ("bias", "message"),
    [
        ({1: 100.5}, r"logit_bias\[1\]: expected a number from -100 to 100, found 100.5"),
        ({1: -101}, "-100 bans the token"),
        ({1: NAN}, "found nan"),
        ({1: True}, "found True"),
        ({1: None}, "found None"),
        ({"1": 0}, "logit_bias, a key: expected a whole number.*found '1'. Keys are token ids"),
        ({-1: 0}, "a key"),
        ({2**31 - 1: 0}, "a key"),
        ({True: 0}, "a key"),
        ({10**5000: 0}, "very many digits"),
        (dict.fromkeys(range(513), 0), "at most 512 entries, found 513"),
        ([(1, 2)], "a mapping"),
        (None, "a mapping"),
    ],
)
def test_impossible_biases(bias, message):
    with pytest.raises(InputError, match=message):
        Sampling(logit_bias=bias)


def test_options_are_values():
    one, other = (Sampling(logit_bias=bias, stop=["a"]) for bias in ({1: 2, 3: 4}, {3: 4.0, 1: 2.0}))
    assert one == other
    assert {one: "found"}[other] == "found"
    assert one != dataclasses.replace(one, logit_bias={1: 2})
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    assert dataclasses.replace(one, temperature=1).logit_bias == {1: 2, 3: 4}
    assert dataclasses.asdict(one)["logit_bias"] == {1: 2, 3: 4}
    assert "logit_bias={1: 2.0, 3: 4.0}" in repr(one)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.temperature = 1.0
    with pytest.raises(TypeError, match="does not support item assignment"):
        one.logit_bias[1] = 3


def test_later_changes_of_what_was_passed_change_nothing():
    bias, stop = {1: 2.0}, ["a"]
    options = Sampling(logit_bias=bias, stop=stop)
    bias[1], stop[0] = 3.0, "b"
    assert (options.logit_bias, options.stop) == ({1: 2.0}, ("a",))


def test_the_device_takes_what_is_legal():
    assert (MAX_LOGIT_BIASES, LARGEST_ID) == (MAX_BIASES, UNUSED - 1)
    assert NUMBERS["top_logprobs"][0] == TOP_LOGPROBS
    knobs(
        seed=2**64 - 1, prompt_length=1, top_k=LARGEST_INT, logit_bias=Sampling(logit_bias={LARGEST_ID: 1}).logit_bias
    )
