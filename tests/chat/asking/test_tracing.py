"""LangSmith's view of a call."""

from __future__ import annotations

from langchain_gemma_jax import ChatGemmaJax


def test_tracing_knows_what_was_called():
    model = ChatGemmaJax(model="x", temperature=0.5, stop=["a"])
    assert model._get_ls_params() == {
        "ls_provider": "gemma_jax",
        "ls_model_type": "chat",
        "ls_model_name": "x",
        "ls_temperature": 0.5,
        "ls_stop": ["a"],
    }
    given = model._get_ls_params(stop=["b"], model="y", temperature=0.0, max_tokens=5)
    assert (given["ls_model_name"], given["ls_temperature"], given["ls_stop"]) == ("y", 0.0, ["b"])
    assert given["ls_max_tokens"] == 5
