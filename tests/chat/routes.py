"""A route between two sizes, and what its answers say of it."""

from __future__ import annotations

from langchain_core.messages import AIMessage

SIZES = {"light": "./light", "heavy": "./heavy"}
CALL = "<|tool_call>call:ring{times:2}<tool_call|>"


def ring(times: int) -> str:
    """Rings the bell."""
    return "ding" * times


def route_of(message: AIMessage) -> dict:
    return message.response_metadata["route"]
