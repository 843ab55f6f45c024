"""The requests that submit refuses, before they are anywhere."""

from __future__ import annotations

from array import array
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from langchain_gemma_jax.engine.api.request_making import _check_media
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.prompt import MediaSpan, Prompt, TokenSpan
from langchain_gemma_jax.errors import ContextLengthError, InputError, UnsupportedModelError
from tests.engine.faults_support import LIMIT, assert_works, greedy, outcome, slowed
from tests.engine.seeing import SOFT, picture, seeing, spans_of
from tests.engine.tiny import CONTEXT


@pytest.fixture
def sees(tiny_model):
    model = seeing(tiny_model)
    yield model
    model.encoders.close()


def test_pictures_for_a_model_that_reads_text_alone_or_for_another_are_refused(engine_of, tiny_model, sees):
    engine = engine_of()
    spans = [TokenSpan((2,)), *spans_of(sees, picture(0))]
    with pytest.raises(UnsupportedModelError, match="reads text alone"):
        engine.submit(engine.serve(tiny_model), Prompt(tuple(spans)))
    served = engine.serve(sees)
    with pytest.raises(InputError, match="expected tokens behind"):
        engine.submit(served, Prompt(tuple(spans[:-1])))
    for inputs in ({"pixels": np.zeros((8, 8, 3), np.uint8)}, {"samples": np.zeros(3, np.float32)}, {}):
        wrong = [TokenSpan((2,)), MediaSpan((12,) * SOFT, b"x", inputs), TokenSpan((3,))]
        with pytest.raises(InputError, match="prepared for"):
            engine.submit(served, Prompt(tuple(wrong)))


def test_a_model_on_several_hosts_says_that_it_is_shown_nothing(sees):
    shape = SimpleNamespace(architecture=replace(sees.architecture, encoders=()))
    known = SimpleNamespace(served=SimpleNamespace(model=sees, name="it"), shape=shape)
    with pytest.raises(UnsupportedModelError, match="of several hosts, where its encoders do not run"):
        _check_media(known, Prompt((TokenSpan((2,)), *spans_of(sees, picture(0)), TokenSpan((20,)))))


BIG = 2**63


@pytest.mark.long
def test_ids_come_in_any_sequence(small):
    engine, served = small
    ids = [10, 300, 11, 12]
    kinds = [
        ids,
        tuple(ids),
        array("i", ids),
        array("q", ids),
        np.array(ids),
        np.array(ids, np.uint16),
        [np.int64(token) for token in ids],
        range(10, 14),
    ]
    found = [engine.submit(served, kind, greedy(3)).result().ids for kind in kinds]
    assert len(set(found[:-1])) == 1
    assert len(found[-1]) == 3


@pytest.mark.long
def test_the_callers_array_is_copied(small):
    engine, served = small
    ids = array("i", [10, 11, 12])
    with slowed(0.01):
        generation = engine.submit(served, ids, greedy(10))
        ids[0] = 99
        ids.append(5)
        del ids[:]
        changed = generation.result().ids
    assert changed == engine.submit(served, [10, 11, 12], greedy(10), scope="other").result().ids


WRONG_PROMPTS = {
    "nothing": ([], "one token at least"),
    "no array entry": (np.zeros(0, np.int32), "one token at least"),
    "a float": ([1, 2.0], "float"),
    "a float array": (np.ones(3), "float"),
    "NaN": ([float("nan")], "float"),
    "True": ([1, True], "True or False"),
    "a bool array": (np.ones(3, bool), ""),
    "negative": ([5, -1], "found -1"),
    "the vocabulary's size": ([320], "from 0 to 319, found 320"),
    "huge": ([BIG], f"found {BIG}|too big|too large|out of range"),
    "very negative": ([-BIG], f"found {-BIG}|too large"),
    "very huge": ([10**400], "too big|too large|out of range"),
    "a str": ("abc", "found str"),
    "bytes": (b"\x05\0\0\0", "found bytes"),
    "a bytearray": (bytearray(b"\x05\0\0\0"), "found bytearray"),
    "strs": (["a"], "str"),
    "None": (None, "found NoneType"),
    "an int": (5, "found int"),
    "a generator": ((token for token in [1, 2]), "found generator"),
    "rows": ([[1, 2]], "list"),
    "an array with rows": (np.ones((2, 2), np.int32), ""),
    "an array without a length": (np.int64(5), ""),
}


@pytest.mark.parametrize("name", WRONG_PROMPTS)
def test_ids_that_are_none_are_refused_at_once(small, name):
    engine, served = small
    prompt, said = WRONG_PROMPTS[name]
    with pytest.raises(InputError, match=f"^prompt: expected .*({said})"):
        engine.submit(served, prompt, greedy(1))
    assert_works(engine, served)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 31, 32, 33, CONTEXT - 2, CONTEXT - 1])
def test_prompts_of_any_length_that_fits(small, length):
    engine, served = small
    found = engine.submit(served, [10] * length, greedy(200)).result()
    assert len(found.ids) == CONTEXT - length
    assert found.finish_reason == "length"


@pytest.mark.parametrize("length", [CONTEXT, CONTEXT + 1, 10**7])
def test_a_prompt_that_does_not_fit_is_refused_by_how_much(small, length):
    engine, served = small
    with pytest.raises(ContextLengthError) as raised:
        engine.submit(served, range(length), greedy(1))
    assert raised.value.excess == length - (CONTEXT - 1)
    assert str(raised.value.excess) in str(raised.value)
    assert_works(engine, served)


NUMBERS = [-BIG, -1, 0, 1, 2, CONTEXT, BIG, 10**400, float("inf"), float("-inf"), float("nan"), True, "1", None, 0.5]


NUMERIC = [
    "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "seed",
    "max_tokens", "top_logprobs",
]  # fmt: skip


@pytest.mark.parametrize("name", NUMERIC)
def test_every_number_is_refused_or_right(small, name):
    engine, served = small
    taken, refused = 0, []
    for value in NUMBERS:
        options = {"max_tokens": 3, "ignore_eos": True, "logprobs": name == "top_logprobs", name: value}
        try:
            sampling = Sampling(**options)
        except InputError as error:
            refused.append(str(error))
            continue
        taken += 1
        found = engine.submit(served, [10, 11], sampling, timeout=LIMIT).result()
        wanted = (CONTEXT - 2 if value is None else min(value, CONTEXT - 2)) if name == "max_tokens" else 3
        assert len(found.ids) == wanted, f"{name}={value}"
        assert all(0 <= token < 320 for token in found.ids)
    assert taken
    assert all(name in error for error in refused)
    assert_works(engine, served)


@pytest.mark.parametrize("name", ["timeout", "system", "max_context"])
def test_every_number_beside_them_is_refused_or_right(small, name):
    engine, served = small
    taken, refused = [], []
    for value in NUMBERS:
        try:
            if name == "max_context":
                engine.warmup(served, max_context=value)
            else:
                outcome(engine.submit(served, [10, 11], greedy(1), **{name: value}))
        except InputError as error:
            refused.append(str(error))
        else:
            taken.append(value)
    assert all(name in error for error in refused)
    assert (
        taken
        == {
            "timeout": [0, 1, 2, CONTEXT, None, 0.5],
            "system": [0, 1, 2],
            "max_context": [1, 2, CONTEXT, None],
        }[name]
    )
    assert_works(engine, served)


@pytest.mark.parametrize("scope", [None, 1, b"a", ["a"]])
def test_a_scope_is_a_string(small, scope):
    engine, served = small
    with pytest.raises(InputError, match="scope: expected a string"):
        engine.submit(served, [10], greedy(1), scope=scope)


@pytest.mark.parametrize("sampling", [{}, {"max_tokens": 3}, "greedy", 0, False])
def test_sampling_is_sampling(small, sampling):
    engine, served = small
    with pytest.raises(InputError, match=r"sampling: expected Sampling\(\.\.\.\) or None"):
        engine.submit(served, [10], sampling)


def test_a_bias_for_a_token_that_the_model_does_not_have_is_refused(small):
    engine, served = small
    with pytest.raises(InputError, match="logit_bias: expected token ids from 0 to 319, found 320"):
        engine.submit(served, [10], greedy(1, logit_bias={5: 1.0, 320: 1.0}))
    biased = engine.submit(served, [10], greedy(3, logit_bias={319: -100.0, 77: 100.0})).result()
    assert biased.ids == (77, 77, 77)


@pytest.mark.parametrize("served", [None, "a", [], {}, 5])
def test_what_is_not_served_is_refused(small, served, tiny_model):
    engine, _ = small
    for wrong in (served, tiny_model):
        for call in (
            lambda wrong=wrong: engine.submit(wrong, [10]),
            lambda wrong=wrong: engine.unload(wrong),
        ):
            with pytest.raises(InputError, match=r"is not served by this engine\. Use what its load\(\) or serve\(\)"):
                call()
    with pytest.raises(InputError, match="expected a model"):
        engine.serve(served)
