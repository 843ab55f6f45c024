"""Agents whose sizes are chat models of their own."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from langchain_gemma_jax import Choice, InputError
from langchain_gemma_jax.middleware import KeepWarmMiddleware, RouteMiddleware
from tests.waiting import until


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


class Ahead:
    """Something that is read ahead, until it is cancelled."""

    def __init__(self, messages: list, tools: list | None) -> None:
        self.said, self.tools, self.cancelled = [each.text for each in messages], tools, False

    def cancel(self) -> None:
        self.cancelled = True


class Reader(Fake):
    """A model that notes what it is to read ahead."""

    seen: list = []  # noqa: RUF012  a field of pydantic's, which copies it

    def prepare(self, messages, **given):
        self.seen.append(Ahead(messages, given.get("tools")))
        return self.seen[-1]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_what_is_known_of_the_next_prompt_is_read_ahead(how):
    twice = AIMessage("", tool_calls=[*call(2).tool_calls, *call(3).tool_calls])
    model = Reader(messages=iter([twice, "Done.", "Well."]))
    agent = create_agent(
        model, [ring], system_prompt="S", middleware=[KeepWarmMiddleware()], checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "1"}}
    for said in ("Ring", "Thanks"):
        given = {"messages": [HumanMessage(said)]}
        found = agent.invoke(given, config) if how == "invoke" else await agent.ainvoke(given, config)
    assert found["messages"][-1].text == "Well."
    assert model.seen[-2].said == ["S", "Ring", "", "dingding", "dingdingding", "Done.", "…"]
    assert model.seen[-1].said == [*model.seen[-2].said[:-1], "Thanks", "Well.", "…"]
    assert [each.tools[0].name for each in model.seen] == ["ring"] * len(model.seen)
    *earlier, last = (each.cancelled for each in model.seen)
    assert all(earlier)
    assert not last, "it is of use still"
    results = [each.said for each in model.seen[:-2]]  # unless the second tool was as quick
    assert results in ([], [["S", "Ring", "", "dingding"]])


def test_the_first_result_is_read_while_the_second_tool_runs():
    def wait(times: int) -> str:
        """Waits."""
        until(lambda: model.seen)
        return "late"

    slow = {"name": "wait", "args": {"times": 1}, "id": "slow"}
    model = Reader(messages=iter([AIMessage("", tool_calls=[*call(2).tool_calls, slow]), "Done."]))
    agent = create_agent(model, [ring, wait], middleware=[KeepWarmMiddleware()])
    agent.invoke({"messages": [HumanMessage("Ring")]})
    assert model.seen[0].said == ["Ring", "", "dingding"]


class Weather(BaseModel):
    """The weather."""

    sunny: bool


class Bound(Reader):
    """A model that notes what it is bound to, and says so when it reads ahead."""

    bound: list = []  # noqa: RUF012
    ahead: list = []  # noqa: RUF012

    def bind_tools(self, tools, **kwargs):
        self.bound.append([[each.name for each in tools], kwargs.get("response_format")])
        return self

    def prepare(self, messages, **given):
        tools = [each.name for each in given["tools"] or ()]
        self.ahead.append(([each.type for each in messages], [tools, given.get("response_format")]))
        return super().prepare(messages, **given)


def object_of(call_id: str, **args: object) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "Weather", "args": args, "id": call_id}])


@pytest.mark.parametrize(
    ("form", "native", "answers", "before"),
    [
        (Weather, True, ['{"sunny": true}'], ["human", "ai", "human"]),
        (ProviderStrategy(Weather), False, ['{"sunny": true}'], ["human", "ai", "human"]),
        (Weather, False, [object_of("1", sunny=True)], ["human", "ai", "tool", "human"]),
        (
            ToolStrategy(Weather),
            True,
            [object_of("1", sunny="perhaps"), object_of("2", sunny=True)],  # the first is refused, and asked again
            ["human", "ai", "tool", "ai", "tool", "human"],
        ),
    ],
)
def test_an_agent_with_a_response_format_reads_ahead_what_it_binds(form, native, answers, before):
    model = Bound(messages=iter(answers), profile={"structured_output": native})
    agent = create_agent(model, [ring], response_format=form, middleware=[KeepWarmMiddleware()])
    found = agent.invoke({"messages": [HumanMessage("Is it sunny?")]})
    assert found["structured_response"] == Weather(sunny=True)
    assert model.ahead == [(before, model.bound[-1])]


def test_a_model_that_cannot_read_ahead_is_named():
    agent = create_agent(speaker("Done."), [], middleware=[KeepWarmMiddleware()])
    with pytest.raises(InputError, match=r"found Fake, which has no prepare\(\)"):
        agent.invoke({"messages": [HumanMessage("Hi")]})
