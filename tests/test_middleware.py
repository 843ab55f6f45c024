"""Agents whose sizes are chat models of their own."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage

from langchain_gemma_jax import Choice, InputError
from langchain_gemma_jax.middleware import RouteMiddleware


class Fake(GenericFakeChatModel):
    """Says what it was told to, whatever tools there are."""

    def bind_tools(self, tools, **kwargs):
        return self


def speaker(*answers: AIMessage | str) -> Fake:
    return Fake(messages=iter(answers))


def call(times: int) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "ring", "args": {"times": times}, "id": f"call {times}"}])


def ring(times: int) -> str:
    """Rings the bell."""
    if times > 5:
        raise ValueError("that is too often")
    return "ding" * times


def routes(messages) -> list[tuple[str, str]]:
    found = [message.response_metadata["route"] for message in messages if isinstance(message, AIMessage)]
    return [(each["size"], each["reason"]) for each in found]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_each_step_goes_to_the_model_that_suits_it(how):
    seen = []

    def policy(signals):
        seen.append(signals)
        return Choice("heavy" if signals.results else "light", "by results")

    middleware = RouteMiddleware(light=speaker(call(2)), heavy=speaker("Done."), policy=policy)
    agent = create_agent(speaker(), [ring], middleware=[middleware])
    given = {"messages": [HumanMessage("Ring")]}
    found = agent.invoke(given) if how == "invoke" else await agent.ainvoke(given)
    assert routes(found["messages"]) == [("light", "by results"), ("heavy", "by results")]
    first, second = seen
    assert (first.sizes, first.last, first.tools, first.results) == (("light", "heavy"), None, 1, 0)
    assert (second.last, second.results, second.failed) == ("light", 1, 0)


def test_the_default_policy_does_not_split_a_tool_loop():
    middleware = RouteMiddleware(light=speaker(call(2), "Done."), heavy=speaker())
    found = create_agent(speaker(), [ring], middleware=[middleware]).invoke({"messages": [HumanMessage("Ring")]})
    assert routes(found["messages"]) == [("light", "load 0.5: it asks little"), ("light", "a tool loop is not split")]


@pytest.mark.parametrize(
    ("models", "match"),
    [({}, "two or more"), ({"light": speaker()}, "two or more"), ({"light": speaker(), "heavy": "x"}, "'heavy'")],
)
def test_what_is_no_route_is_refused(models, match):
    with pytest.raises(InputError, match=match):
        RouteMiddleware(**models)


def test_a_policy_that_gives_no_choice_is_named():
    middleware = RouteMiddleware(light=speaker(), heavy=speaker(), policy=lambda _: "light")
    with pytest.raises(InputError, match="expected the policy to give a Choice of light, heavy"):
        create_agent(speaker(), [ring], middleware=[middleware]).invoke({"messages": [HumanMessage("Ring")]})
