"""An agent with three tools, on the model that comes with the package: no download, no account.

    python examples/agent.py                                          # some questions, and what they cost
    python examples/agent.py "Convert 26.2 miles." "Add a note: Buy milk"
    python examples/agent.py --model google/gemma-3-4b-it

LangChain's agents are in an extra: pip install "langchain-gemma-jax[agents]"
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import date
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, ToolMessage

from langchain_gemma_jax import ChatGemmaJax, engine

QUESTIONS = [
    "Hello!",
    "Convert 12 miles to kilometres.",
    "Add a note: Buy stamps for Наталья",
    "Look up the weekday of 2026-12-24.",
    "Thank you!",
]
NOTES: list[str] = []
TINY = "(a tiny model for demonstrations answers; name a real one with --model google/gemma-3-4b-it)"


def convert(miles: float) -> str:
    """Convert miles to kilometres."""
    return f"{miles * 1.609344:.1f} km"


def weekday(day: str) -> str:
    """Look up the weekday of a date.

    Args:
        day: The date, e.g. 2024-05-31
    """
    try:
        return f"{date.fromisoformat(day):%A}"
    except ValueError:
        return "Error: expected a date such as 2024-05-31"


def add_note(text: str) -> str:
    """Add a note to the list."""
    NOTES.append(text)
    return f"Stored as note {len(NOTES)}"


def main(llm: ChatGemmaJax, questions: list[str]) -> None:
    """Ask one question after another in one conversation."""
    agent = create_agent(llm, [convert, weekday, add_note])
    history: list[AnyMessage] = []
    for question in questions:
        print(f"> {question}")
        history.append(HumanMessage(question))
        pieces: Iterator[Any] = agent.stream({"messages": [*history]}, stream_mode=["messages", "values"])
        for kind, part in pieces:
            if kind == "values":
                history = part["messages"]
                told(history[-1])
            elif isinstance(part[0], AIMessageChunk):
                print(part[0].text, end="", flush=True)
    print(f"\nNotes: {NOTES}\n\n{engine().report()}")


def told(message: AnyMessage) -> None:
    """Print the parts that are not streamed as text: calls and their results."""
    if isinstance(message, ToolMessage):
        print(f"  = {message.text}")
    elif isinstance(message, AIMessage):
        for call in message.tool_calls:
            print(f"  {call['name']}({', '.join(f'{name}={value!r}' for name, value in call['args'].items())})")
        if message.text:
            print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("questions", nargs="*", help="in one conversation; some of its own where none is given")
    parser.add_argument("--model", default=None, help="an embedded one by default")
    given = parser.parse_args()
    if given.model is None:
        print(TINY)
    main(ChatGemmaJax(model=given.model, temperature=0, max_tokens=256), given.questions or QUESTIONS)
