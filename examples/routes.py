"""Two sizes behind one chat model: which one answered each step, and why.

python examples/routes.py                                                    # the embedded ones
python examples/routes.py google/gemma-4-E2B-it google/gemma-4-26B-A4B-it
"""

from __future__ import annotations

import sys

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from langchain_gemma_jax import ChatGemmaJax, Route, engine

QUESTIONS = ["Hello!", "Convert 12 miles to kilometres.", "Thank you!"]


def convert(miles: float) -> str:
    """Convert miles to kilometres."""
    return f"{miles * 1.609344:.1f} km"


def main(route: Route) -> None:
    """Ask one question after another, and print who took which step."""
    agent = create_agent(ChatGemmaJax(model="auto", route=route, temperature=0, max_tokens=64), [convert])
    history: list[AnyMessage] = []
    for question in QUESTIONS:
        before = len(history)
        history = agent.invoke({"messages": [*history, HumanMessage(question)]})["messages"]
        print(f"> {question}")
        for message in history[before + 1 :]:
            if isinstance(message, AIMessage):
                step = message.response_metadata["route"]
                said = message.text or f"calls {message.tool_calls[0]['name']}"
                print(f"  {step['size']}: {said}  ({step['reason']})")
    report = engine().report()
    print(f"steps by size: {dict(report.routed)}; {report.switches} switches, {report.escalations} escalations")


if __name__ == "__main__":
    light, heavy = sys.argv[1:3] if sys.argv[2:] else ("sprout-s", "sprout-m")
    main(Route(light=light, heavy=heavy))
