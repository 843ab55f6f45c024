"""``gemma-jax chat --model torchax:FOLDER`` at a terminal, as a user has it."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax import ChatGemmaJax
from tests.cli.person import Person
from tests.own_engine import own_engine
from tests.torchax.torch_models import needs_torch, save_model

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default"), pytest.mark.timeout(400)]


def test_a_model_of_another_family_talks_at_a_terminal(tmp_path):
    save_model(tmp_path, "qwen 3")
    source, history = f"torchax:{tmp_path}", tmp_path / "said.json"
    options = ["--model", source, "--temperature", "0", "--max-tokens", "12", "--history", str(history)]
    person = Person(tmp_path, "chat", *options)
    try:
        person.waits_for(f"{source}. /help says")
        for number, question in enumerate(("Hello!", "And then?"), 1):
            person.type(f"{question}\n")
            person.type("/report\n")
            person.waits_for(f"{number} done, 0 of them failed")
            person.waits_for("generated tokens")
        person.type("\x04")
        assert person.ends() == 0
    finally:
        person.process.kill()
    assert "Traceback" not in person.shown
    said = [message["data"]["content"] for message in json.loads(history.read_text())]
    with own_engine():
        llm = ChatGemmaJax(model=source, temperature=0, max_tokens=12)
        assert said[1] == llm.invoke([("user", "Hello!")]).text != ""
        assert said[3] == llm.invoke([("user", said[0]), ("ai", said[1]), ("user", said[2])]).text
