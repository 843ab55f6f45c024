"""Which word is the model's, and which the question."""

from __future__ import annotations

import io
import sys

import pytest

from langchain_gemma_jax.cli.command import main


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (["--weights", "int8", "--thinking"], {"weights": "int8", "thinking": True}),
        (["--server", "auto", "--stop", "a", "--no-parallel-tool-calls"],
         {"server": "auto", "stop": ["a"], "parallel_tool_calls": False}),
        (["--route", "light=sprout-s,heavy=sprout-m"], {"route": {"light": "sprout-s", "heavy": "sprout-m"}}),
        (["--model", "auto", "--route", "light=sprout-s,heavy=sprout-m"],
         {"model": "auto", "route": {"light": "sprout-s", "heavy": "sprout-m"}}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", [["run", "Hi"], ["chat"]])
def test_each_setting_of_the_chat_model_is_an_option(arguments, given, verb, own, monkeypatch):
    from langchain_core.messages import AIMessageChunk

    import langchain_gemma_jax

    class Model:
        def __init__(self, **given):
            heard.append(given)

        def stream(self, _):
            yield AIMessageChunk("Yes.")

    heard = []
    monkeypatch.setattr(langchain_gemma_jax, "ChatGemmaJax", Model)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hi\n"))
    assert main([*verb, *arguments]) == 0
    assert heard == [{"model": None, "server": None} | given]


@pytest.mark.parametrize(
    ("arguments", "piped", "model", "asked"),
    [
        (["run", "Hi there"], "", None, "Hi there"),
        (["run", "sprout-s", "Hi there"], "", "sprout-s", "Hi there"),
        (["run", "sprout-s", "--seed", "1", "Hi there"], "", "sprout-s", "Hi there"),
        (["run", "sprout-s", "sprout-m"], "", "sprout-s", "sprout-m"),
        (["run", "sprout-s"], "Piped", "sprout-s", "Piped"),
        (["run", "ollama:gemma3:4b", "-"], "Piped", "ollama:gemma3:4b", "Piped"),
        (["run", "unsloth/gemma-3-1b-it-GGUF:Q8_0"], "Piped", "unsloth/gemma-3-1b-it-GGUF:Q8_0", "Piped"),
        (["run", "TCP/IP"], "Piped", None, "TCP/IP\n\nPiped"),
        (["run", "notes"], "Piped", None, "notes\n\nPiped"),
        (["run", "here"], "Piped", "here", "Piped"),
        (["run", "sprout-m", "--model", "sprout-s"], "", "sprout-s", "sprout-m"),
        (["run", "sprout-s", "Hi", "--model", "sprout-s"], "", "sprout-s", "Hi"),
        (["chat"], "Hi\n", None, "Hi"),
        (["chat", "sprout-s"], "Hi\n", "sprout-s", "Hi"),
        (["chat", "--seed", "1", "sprout-s"], "Hi\n", "sprout-s", "Hi"),
        (["chat", "--model", "sprout-s", "sprout-s"], "Hi\n", "sprout-s", "Hi"),
    ],
)
def test_a_bare_word_is_the_model_or_the_question(arguments, piped, model, asked, own, monkeypatch, capsys):
    from langchain_core.messages import AIMessageChunk

    import langchain_gemma_jax

    class Model:
        def __init__(self, **given):
            heard.append(given.get("model"))

        def stream(self, messages):
            last = messages[-1]
            heard.append(last[1] if isinstance(last, tuple) else last.content)
            yield AIMessageChunk("Yes.")

    heard = []
    (own / "notes").mkdir()
    (own / "here").mkdir()
    (own / "here" / "config.json").write_text("{}")
    monkeypatch.setattr(langchain_gemma_jax, "ChatGemmaJax", Model)
    monkeypatch.setattr(sys, "stdin", io.StringIO(piped))
    assert main(arguments) == 0
    assert capsys.readouterr().out.strip() == "Yes."
    assert heard[0] == model
    assert asked in heard[1]
