"""An answer that may be given up for a larger model's is not shown before it is sure."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import Calibration
from tests.chat.routes import CALL, ring, route_of


def test_words_are_judged_where_they_are_calibrated_and_not_shown_yet(said):
    judged = {"route": {"calibration": {"light": Calibration(words=1.0)}}}
    model, engine, _ = said("Perhaps<turn|>", "Surely<turn|>", "Perhaps<turn|>", **judged)
    answer = model.invoke("Hi")
    assert (answer.text, route_of(answer)["escalated_from"]) == ("Surely", ["light"])
    assert "sure of its answer" in route_of(answer)["reason"]
    # What was streamed stays, and comes token by token.
    chunks = list(model.stream("Hi"))
    assert "".join(chunk.text for chunk in chunks) == "Perhaps"
    assert len(chunks) > 2
    assert not engine.answers


@pytest.mark.parametrize("way", ["stream", "astream", "events"])
@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
async def test_calls_are_held_back_and_words_before_them_keep_them(way, said):
    judged = {"route": {"calibration": {"light": Calibration(calls=1.0)}}}

    async def asked(model):
        bound = model.bind_tools([ring])
        if way == "events" and hasattr(model, "stream_events"):
            return bound.stream_events("Ring", version="v3").output
        chunks = list(bound.stream("Ring")) if way != "astream" else [chunk async for chunk in bound.astream("Ring")]
        return chunks[0] + chunks[1:]

    model, engine, _ = said(f" {CALL}<|tool_response>", f"Well. {CALL}<|tool_response>", **judged)
    answer = await asked(model)
    assert route_of(answer)["size"] == "heavy"
    assert (answer.text, len(answer.tool_calls)) == ("Well. ", 1)
    model, engine, _ = said(f"Well. {CALL}<|tool_response>", **judged)
    answer = await asked(model)
    assert route_of(answer)["size"] == "light"
    assert (answer.text, len(answer.tool_calls)) == ("Well. ", 1)
    assert not engine.answers
