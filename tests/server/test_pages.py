"""The paths that are asked for by GET."""

from __future__ import annotations

from langchain_gemma_jax.server.http.api_keys import ApiKeys
from langchain_gemma_jax.wire.addresses import PATH
from tests.serving import ALICE, CHAT, HELLO, NATIVE, PUBLIC, asked, serving


def test_paths_and_methods(at, says):
    says("Hello<turn|>")
    assert asked(at, "/health")[0] == 200
    assert asked(at, "/ready")[1] == {"ready": True, "pending": {}, "ending": False}
    assert [each["id"] for each in asked(at, "/v1/models")[1]["data"]] == ["sprout-s"]
    assert asked(at, "/v1/models/sprout-s")[1]["max_input_tokens"] == 4095
    assert "gemma_jax_engine_up" in asked(at, "/metrics")[1]
    nowhere = asked(at, "/nowhere")[1]["error"]
    assert nowhere["code"] == "no_such_path"
    assert nowhere["message"].startswith(
        "There is no '/nowhere' here. There are /health, /ready, /metrics, /v1/models, "
    )
    assert "/v1/chat/completions" in nowhere["message"]
    assert "docs/" not in nowhere["message"]
    for path in (*PUBLIC, NATIVE):
        assert asked(at, path)[0] == 405
    assert asked(at, "/health", {})[0] == 405
    assert asked(at, PATH + "nothing", {})[1]["error"]["name"] == "InputError"


def test_metrics_may_be_open_where_nothing_else_is():
    with serving(None, keys=ApiKeys({ALICE: "alice"}), open_metrics=True) as server:
        at = server.listening.shown
        assert "gemma_jax_engine_up" in asked(at, "/metrics")[1]
        assert [asked(at, path, body)[0] for path, body in (("/v1/models", None), (CHAT, HELLO))] == [401, 401]
