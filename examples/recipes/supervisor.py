"""A small model for what is easy, and a large one for what is hard, in one agent.

python examples/recipes/supervisor.py google/gemma-3-270m-it google/gemma-4-E4B-it
"""

import sys

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_gemma_jax import ChatGemmaJax, Route, engine
from langchain_gemma_jax.middleware import RepeatedCallMiddleware


def convert(miles: float) -> str:
    """Convert miles to kilometres."""
    return f"{miles * 1.609344:.1f} km"


def add_note(text: str) -> str:
    """Add a note to the list."""
    return f"Stored: {text}"


light, heavy = sys.argv[1:] or ("sprout-s", "sprout-m")
llm = ChatGemmaJax(model="auto", route=Route(light=light, heavy=heavy), temperature=0, max_tokens=64)
agent = create_agent(llm, [convert, add_note], middleware=[RepeatedCallMiddleware()], checkpointer=InMemorySaver())
for question in ("Hello!", "Convert 12 miles to kilometres.", "Add a note: Buy stamps"):
    said = agent.invoke({"messages": [HumanMessage(question)]}, {"configurable": {"thread_id": "1"}})["messages"]
    print(f"> {question}\n  {said[-1].text}")
    route = next(each.response_metadata["route"] for each in reversed(said) if isinstance(each, AIMessage))
    print(f"  by {route['size']}: {route['reason']}")
report = engine().report()
print(f"{dict(report.routed)} steps, {report.switches} switches, {report.escalations} given to the larger one")
