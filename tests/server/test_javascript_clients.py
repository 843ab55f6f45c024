"""JavaScript's clients, as npm has them: OpenAI's own, LangChain's chat model and Ollama's, against our server."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "javascript"
PACKAGES = ("openai", "@langchain/openai", "@langchain/core", "zod", "ollama")
THOUGHT = "<|channel>thought\nHm<channel|>Hello<turn|>"
CALL = "<|tool_call>call:ring{n:3}<tool_call|><|tool_response>"
OBJECT = '{"n":3}<turn|>'


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the clients, and the scripts that use them."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = tmp_path_factory.mktemp("javascript")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), *PACKAGES],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"npm could not install {', '.join(PACKAGES)}: {done.stderr.strip()[-300:]}")
    for script in SCRIPTS.glob("*.mjs"):
        shutil.copy(script, folder)
    return folder


def run(folder: Path, script: str, at: str) -> dict[str, Any]:
    """Return the findings of a script."""
    done = subprocess.run(
        ["node", script, at], cwd=folder, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_openais_client(installed, at, says):
    engine = says("Hello<turn|>", "Hello<turn|>", CALL, CALL, OBJECT, "Hello<turn|>", "Hello<turn|>")
    assert run(installed, "openai_client.mjs", at) == {
        "whole": ["Hello", "stop", True],
        "streamed": ["Hello", True],
        "called": ["ring", {"n": 3}, "tool_calls"],
        "streamedCall": {"n": 3},
        "object": {"n": 3},
        "response": "Hello",
        "errors": [
            ["too long", True, 400, "context_length_exceeded"],
            ["unknown field", True, 400, "invalid_request"],
            ["embeddings", True, 400, "unsupported_model"],
        ],
        "stopped": "assistant",
    }
    assert len(engine.submitted) == 7


def test_langchains_chat_model(installed, at, says):
    says("Hello<turn|>", "Hello<turn|>", CALL, "Done<turn|>", OBJECT)
    assert run(installed, "langchain_client.mjs", at) == {
        "whole": "Hello",
        "streamed": "Hello",
        "called": ["ring", {"n": 3}],
        "after": "Done",
        "result": True,
        "object": {"n": 3},
        "error": [400, "context_length_exceeded"],
    }


def test_ollamas_client(installed, at, says):
    hello = "Hello<turn|>"
    says(hello, hello, CALL, "Done<turn|>", THOUGHT, OBJECT, hello, hello, hello)
    assert run(installed, "ollama_client.mjs", at) == {
        "whole": ["Hello", True, "stop", True],
        "streamed": ["Hello", True, True],
        "called": [["ring", {"n": 3}]],
        "after": "Done",
        "thought": ["Hm", "Hello"],
        "object": {"n": 3},
        "generated": "Hello",
        "generatedLive": "Hello",
        "listed": True,
        "resident": [],
        "shown": [True, "gemma3_text"],
        "pulled": "success",
        "version": "string",
        "errors": [
            ["option", 400, True],
            ["too long", 400, True],
            ["unknown model", 404, True],
            ["vectors", 400, True],
        ],
        "stopped": "assistant",
    }
