"""Nothing blocks an event loop, as LangGraph's server watches for it: making, loading, encoding, compiling, closing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from langchain.agents import create_agent

blockbuster = pytest.importorskip("blockbuster")

try:
    from langchain_core import decisions

    from langchain_gemma_jax import decisions as ours
except ImportError:
    decisions = ours = None

ROOT = Path(__file__).parents[2]


@pytest.fixture
def guarded():
    """Every blocking call on an event loop is an error."""
    with blockbuster.blockbuster_ctx():
        yield


def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


@pytest.fixture
def model(whole_of):
    """A model whose folder is written before anybody watches."""
    return whole_of(temperature=1.0)


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
async def test_calls_of_every_kind(model, guarded):
    assert (await model.ainvoke("HELLO " * 100, max_tokens=8)).usage_metadata["output_tokens"]
    assert [chunk async for chunk in model.astream("HELLO", max_tokens=4)]
    assert len(await model.abatch(["A", "B"], max_tokens=4)) == 2
    assert (await model.bind_tools([weather], tool_choice="any").ainvoke("HELLO")).tool_calls
    if hasattr(model, "stream_events"):
        events = await model.astream_events("HELLO", version="v3", max_tokens=4)
        assert [event async for event in events]
    agent = create_agent(model.model_copy(update={"max_tokens": 4}), [weather])
    assert (await agent.ainvoke({"messages": [("user", "HELLO")]}))["messages"]


@pytest.mark.skipif(decisions is None, reason="this langchain-core has no decision models")
async def test_decisions(model, guarded):
    judge = ours.GemmaDecisionModel(model=model.model)
    asked = {"urgent": decisions.Noul(instructions="URGENT?")}
    assert 0 < (await judge.ainvoke({"state": "HELLO", "questions": asked})).nouls["urgent"].noul < 1


FIRST = """
    import asyncio, os
    from blockbuster import BlockBuster
    from langchain_gemma_jax import ChatGemmaJax, engine

    async def main():
        guard = BlockBuster()
        guard.activate()
        try:
            model = ChatGemmaJax(model={model!r}, max_tokens=4)
            assert (await model.ainvoke("Hello")).usage_metadata["output_tokens"]
            assert [chunk async for chunk in model.astream("Hello")]
            assert await ChatGemmaJax(model={model!r}, max_tokens=4, timeout=100).abatch(["A", "B"])
            await asyncio.to_thread(engine().close, 30)
        finally:
            guard.deactivate()

    asyncio.run(main())
    print("done", end="", flush=True)
    os._exit(0)  # blockbuster changes types of Python itself, over which its end may stumble
"""


@pytest.mark.long
def test_the_first_call_of_a_process(tmp_path):
    """Imports, the search for JAX, the load, what is compiled, all at once and in a process that knows nothing yet."""
    script = dedent(FIRST.format(model="sprout-s"))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done"), done.stderr[-3000:]
