"""Options cross the wire and are checked again behind it."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel, SecretStr

from langchain_gemma_jax import ChatGemmaJax, InputError, Route
from langchain_gemma_jax.wire.message_forms import to_json
from langchain_gemma_jax.wire.option_forms import options_in, options_out


class City(BaseModel):
    """A city."""

    name: str


def ring(n: int) -> str:
    """Ring so often."""
    return "ding" * n


SETTINGS = {
    "model": "x", "temperature": 0.0, "top_k": 3, "logit_bias": {5: -3.0}, "seed": 7, "stop": ["a"], "max_tokens": 9,
    "logprobs": True, "top_logprobs": 2, "thinking": True, "parallel_tool_calls": False, "timeout": 3.0,
    "max_context": 100, "keep_alive": 5.0, "scope": "tenant", "app": "mine", "guards": {"recompile": "warn"},
    "dialect": "gemma4", "dtype": "float32", "revision": "main", "strict": False, "max_soft_tokens": 70,
    "pan_and_scan": {"min_crop_size": 64, "min_ratio_to_activate": 1.5},
}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({}, {}),
        (SETTINGS, {}),
        ({}, {"tools": [ring, City], "tool_choice": "ring", "strict": True}),
        ({"strict": False}, {"tools": [ring], "tool_choice": "any"}),
        ({}, {"response_format": City, "stop": ["x"]}),
        ({}, {"response_format": {"type": "json_object"}}),
        ({}, {"response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": [1]}, "strict": False}}}),
        ({"route": {"light": "a", "heavy": "b"}}, {}),
        ({"token": "hf_x"}, {}),
    ],
)
def test_they_come_back_as_they_were(settings, given):
    model = ChatGemmaJax(**settings)
    asked = model._options(None, given)
    assert options_in(json.loads(to_json(options_out(asked, local=True)))) == asked


def test_what_cannot_be_sent_is_said():
    secret = ChatGemmaJax(token=SecretStr("hf_x"))._options(None, {})
    with pytest.raises(InputError, match="through a Unix socket alone"):
        options_out(secret, local=False)
    routed = ChatGemmaJax(route=Route(light="a", heavy="b", confidence=0.5))._options(None, {})
    with pytest.raises(InputError, match="no policy, confidence or calibration"):
        options_out(routed, local=True)


@pytest.mark.parametrize(
    "told",
    [
        None,
        {"model": 3},
        {"model": "x", "timeout": "long"},
        {"model": "x", "logit_bias": {"5": 1}},
        {"model": "x", "logit_bias": [["a", 1]]},
        {"model": "x", "tools": {}},
        {"model": "x", "tools": [3]},
        {"model": "x", "answer": {"schema": 3}},
        {"model": "x", "callbacks": []},
    ],
)
def test_what_is_none_is_refused(told):
    with pytest.raises(InputError):
        options_in(told)
