"""Models in folders, and an engine of this process that has little to compile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import pytest

from langchain_gemma_jax import ChatGemmaJax, Route
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.models.seams.media_support import MediaSupport
from langchain_gemma_jax.server.running import RunningServer
from tests.chat.routes import SIZES
from tests.chat.scripted import ScriptedEngine
from tests.chat.tiny import CONTEXT, SAMPLED, tiny_folder, toward_ends
from tests.seeing_gemma import add_sight
from tests.serving import serving

# Files whose tests are run through a socket too, in which the same answers come from a server: all with the slow ones,
# these always.
ON_THE_WIRE_ALWAYS = {
    "test_messages_out",
    "test_answer_metadata",
    "test_model_errors",
    "test_protocol_events",
    "test_llms",
}
FROM_THE_ENGINE = {"scripted", "chat_of", "whole_of", "folder_of"}
NOT_ON_THE_WIRE = {
    "test_event_reader.test_bound_tools_are_converted_once": "a server gets tools with each request",
    "test_event_reader.test_settings_are_checked_once": "the client and the server check, once each",
    "test_event_reader.test_an_admission_takes_one_plan": "one process is enough",
    "test_media_in.test_links_and_paths_only_where_they_are_allowed": "links are for a server's owner to allow",
    "test_hub_adapters": "which adapters there are is for a server's owner",
    "test_walk": "the walk is through one process",
    "test_concurrency.test_the_event_loop_is_free_while_tokens_come": "the server's loop is in this process, too",
    "test_starting.test_the_event_loop_is_free_while_a_long_prompt_is_encoded": "the same",
    "test_concurrency.test_the_event_loop_is_free_while_a_large_schema_is_compiled": "the same",
}
LADDERS = Ladders(chunks=(16, 256), capacities=(CONTEXT,), rows=(1, 8))


def pytest_generate_tests(metafunc) -> None:
    if FROM_THE_ENGINE & set(metafunc.fixturenames):
        module = metafunc.module.__name__.rpartition(".")[2]
        name = f"{module}.{metafunc.function.__name__}"
        wire = pytest.param(
            "wire", marks=[] if os.environ.get("WIRE_ALL") or module in ON_THE_WIRE_ALWAYS else [pytest.mark.slow]
        )
        both = ["here"] if name in NOT_ON_THE_WIRE or module in NOT_ON_THE_WIRE else ["here", wire]
        metafunc.fixturenames.append("where")
        metafunc.parametrize("where", both, indirect=True)


@pytest.fixture
def where(request, monkeypatch) -> str:
    """Where a chat model's answers come from: this process's engine, or the same one through a socket."""
    if request.param == "wire":
        monkeypatch.setenv("GEMMA_JAX_SERVER", request.getfixturevalue("server").listening.shown)
    return request.param


@pytest.fixture(scope="package")
def server(tmp_path_factory) -> Iterator[RunningServer]:
    """A server of this process's engine, whichever that is when a call comes."""
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="package")
def running() -> Iterator[Engine]:
    """The engine of this process, for the tests of this folder."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "_engine", Engine(Settings(ladders=LADDERS, drafts=False, guards="raise")))
        yield process.engine()
        assert process.engine().close(30)
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory) -> Callable[..., Path]:
    """``folder_of("gemma")``: a tiny model that speaks this format. The same folder each time."""
    place, known = tmp_path_factory.mktemp("models"), {}

    def folder_of(dialect: str = "gemma4", seed: int = 0, **generation: object) -> Path:
        key = f"{dialect}-{seed}-{len(generation)}"
        if key not in known:
            known[key] = tiny_folder(place / key, dialect, seed=seed, **(generation or SAMPLED))
        return known[key]

    return folder_of


@pytest.fixture(scope="session")
def seeing_folder_of(tmp_path_factory) -> Callable[..., Path]:
    """``seeing_folder_of("gemma")``: the same of a model that sees, in a vocabulary that has tokens for it."""
    place, known = tmp_path_factory.mktemp("seeing"), {}

    def seeing_folder_of(dialect: str = "gemma4") -> Path:
        if dialect not in known:
            known[dialect] = add_sight(tiny_folder(place / dialect, dialect, **SAMPLED))
        return known[dialect]

    return seeing_folder_of


@pytest.fixture(scope="package")
def chat_of(folder_of, running) -> Callable[..., ChatGemmaJax]:
    """``chat_of("gemma", max_tokens=8)``: a chat model of a tiny model, greedy unless said otherwise."""

    def chat_of(dialect: str = "gemma4", **settings: object) -> ChatGemmaJax:
        values = {"model": str(folder_of(dialect)), "max_tokens": 16, "temperature": 0, **settings}
        return ChatGemmaJax(**values)

    return chat_of


@pytest.fixture(scope="package")
def whole_of(chat_of) -> Callable[..., ChatGemmaJax]:
    """The same, of a model that ends its values, with room to do so: what it is held to becomes whole."""

    def whole_of(dialect: str = "gemma4", **settings: object) -> ChatGemmaJax:
        return chat_of(dialect, **{"max_tokens": 300, "logit_bias": toward_ends(dialect), **settings})

    return whole_of


@pytest.fixture
def scripted(monkeypatch) -> Callable[..., tuple[ChatGemmaJax, ScriptedEngine]]:
    """``scripted("an answer<turn|>", dialect="gemma")``: a chat model, and the engine that says so, or is silent."""

    def scripted(
        *answers: str, at_once: int = 1, room: int = 4096, support: MediaSupport | None = None, **settings: object
    ) -> tuple[ChatGemmaJax, ScriptedEngine]:
        silent = not answers
        engine = ScriptedEngine(list(answers), max_context=room, at_once=at_once, silent=silent, support=support)
        monkeypatch.setattr(process, "engine", lambda: engine)
        return ChatGemmaJax(**{"model": "scripted", **settings}), engine

    return scripted


@pytest.fixture
def said(scripted):
    """``said("one", "two")``: a routed model, its engine, and what the policy was shown."""

    def said(*answers: str, policy=None, **settings):
        seen = []

        def watched(signals):
            seen.append(signals)
            return policy(signals)

        route = Route(**SIZES, **({} if policy is None else {"policy": watched}), **settings.pop("route", {}))
        model, engine = scripted(*answers, model="auto", route=route, **settings)
        return model, engine, seen

    return said
