"""Two agents on one engine: one takes orders, the other keeps the books, and a graph hands work from one to the other.

    python examples/multi_agent.py                        # the embedded model
    python examples/multi_agent.py google/gemma-4-E4B-it

LangChain's agents are in an extra: pip install "langchain-gemma-jax[agents]"
"""

from __future__ import annotations

import sys

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_gemma_jax import ChatGemmaJax, engine
from langchain_gemma_jax.middleware import RepeatedCallMiddleware

BOOKS: list[str] = []


def convert(miles: float) -> str:
    """Convert miles to kilometres."""
    return f"{miles * 1.609344:.1f} km"


def add_note(text: str) -> str:
    """Add a note to the list."""
    BOOKS.append(text)
    return f"Stored as note {len(BOOKS)}"


def main(llm: ChatGemmaJax) -> None:
    """Ask something of each agent, in one conversation."""
    agents = {
        "traveler": create_agent(llm, [convert], middleware=[RepeatedCallMiddleware()], name="traveler"),
        "keeper": create_agent(llm, [add_note], middleware=[RepeatedCallMiddleware()], name="keeper"),
    }
    graph = StateGraph(MessagesState)
    for name, agent in agents.items():
        graph.add_node(name, agent)
        graph.add_edge(name, END)
    graph.add_conditional_edges(START, who_answers, list(agents))
    team = graph.compile()
    messages: list[AnyMessage] = []
    for question in ("Convert 12 miles to kilometres.", "Add a note: Buy stamps"):
        messages = team.invoke({"messages": [*messages, HumanMessage(question)]})["messages"]
        for message in messages[-3:]:
            if isinstance(message, AIMessage) and message.tool_calls:
                print(f"{message.name}: {message.tool_calls[0]['name']}({message.tool_calls[0]['args']})")
            elif isinstance(message, ToolMessage):
                print(f"  = {message.text}")
            elif isinstance(message, AIMessage):
                print(f"{message.name}: {message.text}")
    report = engine().report()
    print(f"Notes: {BOOKS}. {report.loads} model for both agents; {report.reused_tokens} tokens were not read again")


def who_answers(state: MessagesState) -> str:
    """Notes are for the keeper, and all else is for the traveler."""
    return "keeper" if "note" in state["messages"][-1].text else "traveler"


if __name__ == "__main__":
    main(ChatGemmaJax(model=sys.argv[1] if sys.argv[1:] else "sprout-m", temperature=0, max_tokens=64))
