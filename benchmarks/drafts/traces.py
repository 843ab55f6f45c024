"""Recorded conversations: the tokens of prompts and answers, by which drafts can be tried without a model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

RECORDED = Path(__file__).with_name("trace.json")


@dataclass(frozen=True)
class Turn:
    """A prompt, and the answer to it."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]


Trace = dict[str, list[list[Turn]]]
"""The conversations of each agent, in their order."""


def read(path: Path = RECORDED) -> Trace:
    """Return a recorded trace."""
    found = json.loads(path.read_text())
    return {
        agent: [[Turn(tuple(turn["prompt"]), tuple(turn["answer"])) for turn in turns] for turns in conversations]
        for agent, conversations in found.items()
    }


def write(trace: Trace, path: Path = RECORDED) -> None:
    """Write a trace, one turn a line."""
    agents = []
    for agent, conversations in trace.items():
        told = [
            "[\n" + ",\n".join(json.dumps({"prompt": turn.prompt, "answer": turn.answer}) for turn in turns) + "]"
            for turns in conversations
        ]
        agents.append(f"{json.dumps(agent)}: [{', '.join(told)}]")
    path.write_text("{" + ",\n".join(agents) + "}\n")
