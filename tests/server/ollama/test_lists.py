"""The models that there are and those in memory, as Ollama lists them; a model's description; the version."""

from __future__ import annotations

from datetime import UTC, datetime

from langchain_gemma_jax import engine
from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.http.api_keys import ApiKeys
from langchain_gemma_jax.server.ollama.lists import in_memory, tags
from tests.own_engine import own_engine
from tests.serving import ALICE, asked, serving


def test_pages_are_asked_by_get_and_need_the_key(says):
    says()
    with serving(None, others=False, keys=ApiKeys({ALICE: "alice"})) as server:
        at, key = server.listening.shown, {"authorization": f"Bearer {ALICE}"}
        for path in ("/api/tags", "/api/ps", "/api/version"):
            assert asked(at, path, headers=key)[0] == 200
            for status, method, headers in ((401, "GET", {}), (405, "POST", key)):
                got, found, _ = asked(at, path, headers=headers, method=method)
                assert (got, set(found)) == (status, {"error", "code"})
        for path, said in (("/api/create", "gemma-jax models pull"), ("/api/unheard-of", "There are /health")):
            got, found, _ = asked(at, path, {}, key)
            assert (got, found["code"], said in found["error"]) == (404, "no_such_path", True)


def test_models_are_listed_as_they_are_served(at, says):
    says()
    (found,) = asked(at, "/api/tags")[1]["models"][:1]
    assert (found["name"], found["model"], found["details"]["format"]) == ("sprout-s", "sprout-s", "safetensors")
    assert datetime.fromisoformat(found["modified_at"]).tzinfo == UTC
    assert [each["name"] for each in tags(ServedModels(("sprout-m",)))["models"]] == ["sprout-m"]
    assert asked(at, "/api/version")[1]["server"].startswith("langchain-gemma-jax ")


def test_a_model_is_described_without_being_loaded(at, says):
    says()
    for body in ({"model": "sprout-s"}, {"name": "sprout-s:latest", "verbose": True}):
        status, found, _ = asked(at, "/api/show", body)
        assert (status, found["capabilities"], found["model_info"]["gemma3_text.context_length"]) == (
            200, ["completion", "tools"], 4096,
        )  # fmt: skip
        assert found["details"]["parameter_size"].endswith("M")
    for body, status, said in (
        ({"model": "llama3"}, 404, "neither a folder nor a file"),
        ({}, 400, "model: expected a string"),
        ({"model": "sprout-s", "verbose": 1}, 400, "verbose: expected true or false"),
        ({"model": "sprout-s", "system": "S"}, 400, "system: this server knows no such field"),
    ):
        got, found, _ = asked(at, "/api/show", body)
        assert (got, said in found["error"]) == (status, True), found


def test_models_in_memory_say_until_when():
    with own_engine():
        assert in_memory(ServedModels(("sprout-s",))) == {"models": []}
        served = engine().load("sprout-s")
        engine().keep_alive(served, 600)
        (found,) = in_memory(ServedModels(("sprout-s",)))["models"]
        assert (found["name"], found["context_length"], found["size"] > 0, found["size_vram"]) == (
            "sprout-s",
            4096,
            True,
            0,
        )
        assert datetime.fromisoformat(found["expires_at"]) > datetime.now(UTC)
        assert in_memory(ServedModels(("sprout-m",))) == {"models": []}
        assert [each["name"] for each in in_memory(ServedModels(("sprout-m",), others=True))["models"]] == ["sprout-s"]
