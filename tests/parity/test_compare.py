"""The comparison itself: it sees what is wrong."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.parity import compare as comparison
from tests.parity.compare import BAR, Reference, Result, compare, config_from_dict, measure, nested, table
from tests.parity.made_up import NEW_TOKENS, tensor
from tests.parity.tiny import QUICK, Runner, parameters, small


@cache
def model():
    """A tiny model, and what a reference that computes just the same would have written of it."""
    config = small("gemma-3-4b")
    config = config.replace(layers=config.layers[:1])
    params = parameters(config)
    prompts, length = np.array([40, 45]), 45 + NEW_TOKENS
    tokens = np.random.default_rng(1).integers(3, 160, (2, length))
    runner = Runner(config, params, lengths=(1, 48))
    scores = [[row] for row in runner.read([tokens[row, :prompt] for row, prompt in enumerate(prompts)])]
    for step in range(NEW_TOKENS):
        for row, at in enumerate(prompts + step):
            tokens[row, at] = scores[row][-1][-1].argmax()
        for row, one in enumerate(runner.read(tokens[[0, 1], prompts + step][:, None])):
            scores[row].append(one)
    logits = np.zeros((2, length, 160), np.float32)
    for row, found in enumerate(scores):
        logits[row, : prompts[row] + NEW_TOKENS] = np.concatenate(found)
    return config, params, Reference("one", tokens, prompts, prompts + NEW_TOKENS, logits)


def result_of(reference):
    config, params, _ = model()
    result = Result("tiny", "itself", wanted_seeds=1)
    compare(result, config, params, reference, QUICK)
    return result


@pytest.mark.long
def test_what_is_equal_passes():
    result = result_of(model()[2])
    assert result.passed
    assert result.remarks == []
    assert (result.seeds, result.greedy, result.greedy_of) == (1, 2 * NEW_TOKENS, 2 * NEW_TOKENS)


@pytest.mark.parametrize("wrong", [0.001, float("nan")])
@pytest.mark.parametrize("at", [0, 39, 103])
def test_one_wrong_number_anywhere_fails(at, wrong):
    reference = model()[2]
    logits = reference.logits.copy()
    logits[0, at, 5] += wrong * reference.spread
    result = result_of(replace(reference, logits=logits))
    assert not result.passed
    assert result.logits > BAR


@pytest.mark.parametrize(("gap", "verdict"), [(1.0, "no tie"), (0.0, "a tie")])
def test_another_token_fails_and_is_told_from_a_tie(gap, verdict):
    reference = model()[2]
    tokens, logits = reference.tokens.copy(), reference.logits.copy()
    last = reference.ends[0] - 1  # nothing follows from it
    other = int(logits[0, last - 1].argsort()[-2])
    logits[0, last - 1, other] = logits[0, last - 1].max() + gap
    tokens[0, last] = other
    result = result_of(replace(reference, tokens=tokens, logits=logits))
    assert not result.passed
    assert result.greedy == result.greedy_of - 1
    assert len(result.remarks) == 1
    assert f"row 0, token {last}: the reference takes {other}" in result.remarks[0]
    assert result.remarks[0].endswith(f"{verdict}.")


@pytest.mark.parametrize("name", ["logits", "cached", "chunked", "padded"])
def test_every_difference_counts(name):
    good = Result("tiny", "itself", wanted_seeds=1, seeds=1, greedy=1, greedy_of=1)
    assert good.passed
    assert not replace(good, **{name: 1.01 * BAR}).passed


@pytest.mark.long
def test_missing_models_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "EXPECTED", {"gemma": ("gemma-2b",)})
    (result,) = measure(tmp_path, "gemma", seeds=2)
    assert not result.passed
    assert [remark for remark in result.remarks if "gemma-2b-1" in remark and "not there" in remark]
    assert "| gemma-2b     | gemma     | 0 " in table([result])


def test_a_configuration_survives_json():
    for name in ("gemma-2b", "gemma-4-e2b", "gemma-4-26b-a4b"):
        config = small(name)
        assert config_from_dict(json.loads(json.dumps(dataclasses.asdict(config)))) == config


def test_paths_become_a_tree():
    assert nested({"a/b": 1, "a/c/d": 2, "e": 3}) == {"a": {"b": 1, "c": {"d": 2}}, "e": 3}


def test_made_up_weights_never_change():
    """Files that were written with them would not fit any more. The values follow from the name alone."""
    expected = [0.5988236, 0.16123237, 0.19874316, 0.8253363, 0.40728098, 0.5325707, 0.040475495, -0.40537602]
    first = tensor("model.layers.0.mlp.up_proj.weight", (2, 4), "gemma-2b", 0, norm_offset=1.0)
    again = tensor("language_model.model.layers.0.mlp.up_proj.weight", (2, 4), "gemma-2b", 0, norm_offset=1.0)
    other = tensor("model.layers.1.mlp.up_proj.weight", (2, 4), "gemma-2b", 0, norm_offset=1.0)
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)
    np.testing.assert_array_equal(first.ravel(), np.array(expected, np.float32))
