"""Bodies that are nearly right, on each API: none makes the server fail, and each refusal has its API's own form."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra [serve]")

from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.app import GemmaJaxApp
from langchain_gemma_jax.server.readiness import Readiness
from langchain_gemma_jax.wire.addresses import PATH
from tests.serving import answered

SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris"]}}, "required": ["city"]}
SAMPLED = {"temperature": 0.5, "top_p": 0.9, "top_k": 5, "stream": False}
OPENAI = {**SAMPLED, "model": "m", "logit_bias": {"5": 1.0}, "seed": 3, "parallel_tool_calls": True, "user": "u"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
WHOLE: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        **OPENAI,
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"city": "P"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "1", "content": "warm"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
        "stop": ["x"],
        "max_tokens": 9,
        "n": 1,
        "reasoning_effort": "low",
        "stream_options": {"include_usage": True},
    },
    "/v1/messages": {
        **SAMPLED,
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "S"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, PICTURE]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "tool_use", "id": "1", "name": "f", "input": {"city": "P"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "warm"}]},
        ],
        "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "f"},
        "stop_sequences": ["x"],
        "thinking": {"type": "enabled", "budget_tokens": 5},
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    },
    "/v1/responses": {
        **OPENAI,
        "instructions": "S",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "warm"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
        "tool_choice": "auto",
        "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
        "max_output_tokens": 9,
        "reasoning": {"effort": "low"},
        "truncation": "disabled",
    },
    PATH + "answer": {
        "messages": [
            {"type": "human", "content": [{"type": "text", "text": "Hi"}]},
            {
                "type": "ai",
                "content": "",
                "tool_calls": [{"name": "f", "args": {"city": "P"}, "id": "1", "type": "tool_call"}],
                "additional_kwargs": {"reasoning_content": "hm"},
            },
            {"type": "tool", "content": "warm", "tool_call_id": "1", "status": "success"},
        ],
        "options": {
            "model": "m",
            "temperature": 0.5,
            "logit_bias": [[5, 1.0]],
            "tools": [{"name": "f", "description": "d", "parameters": SCHEMA}],
            "tool_choice": "any",
            "answer": {"schema": SCHEMA, "lenient": True, "in_prompt": True},
            "scope": "s",
            "timeout": 600.0,
            "thinking": True,
            "stop": ["x"],
            "max_tokens": 9,
            "media_folders": [],
        },
    },
    "/api/chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "Hi", "images": []},
            {
                "role": "assistant",
                "content": "",
                "thinking": "hm",
                "tool_calls": [{"id": "1", "function": {"index": 0, "name": "f", "arguments": {"city": "P"}}}],
            },
            {"role": "tool", "content": "warm", "tool_name": "f"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}],
        "format": SCHEMA,
        "options": {"num_predict": 9, "temperature": 0.5, "stop": ["x"], "num_gpu": 1, "mirostat": 0, "num_ctx": 999},
        "stream": True,
        "keep_alive": "5m",
        "think": "low",
        "logprobs": True,
        "top_logprobs": 2,
    },
    "/api/generate": {
        "model": "m",
        "prompt": "Hi",
        "system": "S",
        "suffix": "",
        "raw": False,
        "images": [],
        "format": "json",
        "options": {"num_predict": 9, "repeat_last_n": 64, "seed": -1, "top_p": 0.5},
        "stream": False,
        "keep_alive": -1,
        "think": False,
        "context": [],
        "truncate": True,
    },
    "/api/embed": {"model": "m", "input": ["Hi"], "truncate": True, "dimensions": 5, "options": {}, "keep_alive": 5},
    "/api/embeddings": {"model": "m", "prompt": "Hi", "options": {"num_ctx": 9}, "keep_alive": "1h30m"},
    "/api/show": {"model": "m", "name": "m", "verbose": True},
    "/api/pull": {"model": "m", "name": "m", "insecure": False, "stream": True},
    "/v1/completions": {
        **OPENAI,
        "prompt": ["Hi", "Ho"],
        "max_tokens": 9,
        "n": 1,
        "best_of": 1,
        "echo": True,
        "stop": ["x"],
        "stream_options": {"include_usage": True},
    },
    "/v1/embeddings": {"model": "m", "input": ["Hi"], "encoding_format": "float", "dimensions": 5, "user": "u"},
}
WHOLE[PATH + "ahead"] = WHOLE[PATH + "answer"]
STRANGE: list[Any] = [
    None, True, 0, -1, 1.5, 10**30, "", "a", "\ud800", "x" * 300, [], [[]], {}, {"type": []}, {"a": {}}, ["a"], "auto",
]  # fmt: skip


def places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every place in a value that can be changed: what holds it, and its name or number there."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        places(value[key], found)
    return found


def changed(whole: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    body = copy.deepcopy(whole)
    for _ in range(rng.choice([1, 1, 2, 4])):
        holder, key = rng.choice(places(body, []) or [(body, "model")])
        match rng.randrange(5):
            case 0 if key in holder or isinstance(holder, list):
                del holder[key]
            case 1 if isinstance(holder, list):
                holder += [copy.deepcopy(holder[key])] * rng.choice([1, 20])
            case 2:
                holder[key] = copy.deepcopy(rng.choice(places(whole, []))[0])
            case _:
                holder[key] = copy.deepcopy(rng.choice(STRANGE))
    return body


def in_form(path: str, told: bytes) -> bool:
    """Return True if an error has the form of an API's errors."""
    found = json.loads(told)
    if path == "/v1/messages":
        return found["type"] == "error" and {"type", "message"} <= set(found["error"])
    if path.startswith("/api/"):
        return isinstance(found["error"], str) and isinstance(found["code"], str)
    if path.startswith(PATH):
        return {"name", "arguments", "message"} <= set(found["error"])
    return {"message", "type", "param", "code"} <= set(found["error"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "count", [pytest.param(60, marks=pytest.mark.long), pytest.param(5000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("path", WHOLE)
async def test_no_body_makes_the_server_fail(path, count, says, caplog):
    says(*["Hello<turn|>"] * count)
    app = GemmaJaxApp(ServedModels(("m",)), readiness=Readiness(()))
    statuses: dict[int, int] = {}
    for seed in range(count):
        body = changed(WHOLE[path], random.Random(seed))
        status, told = await answered(app, path, json.dumps(body).encode())
        assert status in {200, 400, 404} or (status, path) == (403, "/api/pull"), (
            seed,
            status,
            told[:500],
            caplog.text,
        )
        assert status == 200 or in_form(path, told), (seed, told[:500])
        statuses[status] = statuses.get(status, 0) + 1
        assert app._bodies.held == 0
    assert not caplog.records
    assert count - statuses.get(200, 0) > count // 4


@pytest.mark.filterwarnings("ignore")
async def test_kinds_that_are_no_texts_and_options_without_a_model_are_refused(says):
    says()
    app = GemmaJaxApp(ServedModels(("m",)), readiness=Readiness(()))
    for path, change, where in [
        ("/v1/messages", {"messages": [{"role": "assistant", "content": [{"type": []}]}]}, b"content[0].type"),
        ("/v1/messages", {"messages": [{"role": [], "content": "a"}]}, b"messages[0].role"),
        ("/v1/chat/completions", {"messages": [{"role": {}, "content": "a"}]}, b"messages[0].role"),
        ("/v1/responses", {"input": [{"type": {}}]}, b"input[0].type"),
        (PATH + "answer", {"options": {}}, b"model: expected"),
    ]:
        status, told = await answered(app, path, json.dumps(WHOLE[path] | change).encode())
        assert (status, in_form(path, told), where in told) == (400, True, True), told


async def test_requests_are_answered_beside_each_other(says):
    says(*["Hello<turn|>"] * 20)
    app = GemmaJaxApp(ServedModels(("m",)), readiness=Readiness(()))
    hello = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}).encode()
    found = await asyncio.gather(*(answered(app, "/v1/chat/completions", hello) for _ in range(20)))
    assert [status for status, _ in found] == [200] * 20
