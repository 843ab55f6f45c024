"""Tools that have to be called, and answers that are objects.

    python examples/structured.py                       # a tiny model with random weights, made on the spot
    python examples/structured.py google/gemma-3-1b-it

Random weights write nonsense, and it is valid all the same: each answer is held to its schema while it is written.
Without a model it needs the safetensors library, to write one: pip install safetensors
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal

from chat import tiny_model
from pydantic import BaseModel, Field

from langchain_gemma_jax import ChatGemmaJax


class Ticket(BaseModel):
    """What a customer wants."""

    subject: str = Field(max_length=40)
    urgency: Literal["low", "normal", "high"]
    order: int | None = Field(default=None, ge=1, le=9999)


def refund(order: int, reason: str) -> str:
    """Gives a customer the money back."""
    return f"Order {order} was refunded: {reason}."


def look_up(order: int) -> str:
    """Says where an order is."""
    return f"Order {order} is on its way."


TEXT = "My order 4711 came broken! I want my money back, now."


def main(llm: ChatGemmaJax) -> None:
    """An object by each method, one that grows, and a call that has to come."""
    for method in ("json_schema", "function_calling", "json_mode"):
        ticket = llm.with_structured_output(Ticket, method=method).invoke(TEXT)
        print(f"{method}: {ticket!r}")
    for grown in llm.with_structured_output(Ticket.model_json_schema()).stream(TEXT):
        print(f"  {grown}")
    for choice in ("any", "look_up"):
        for call in llm.bind_tools([refund, look_up], tool_choice=choice).invoke(TEXT).tool_calls:
            print(f"tool_choice={choice}: {call['name']}({call['args']})")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(ChatGemmaJax(model=sys.argv[1], max_tokens=128))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(ChatGemmaJax(model=str(tiny_model(Path(scratch))), max_tokens=300, seed=7))
