"""llama.cpp's own drafts on recorded conversations: prompt look-up of its Python binding, beside decoding without.

    .envs/llama-amx/bin/python -m benchmarks.rivals.llama_speculation FILE ROUNDS

It prints JSON: for each agent the seconds of a token in the second conversation, without drafts and with each number of
drafted tokens. The binding's documentation says 10 for GPUs and 2 for CPUs alone; both are tried. Prompts are those of
the trace, answers are greedy and as long as the recorded ones, and what was read stays in the cache.
"""

from __future__ import annotations

import json
import os
import sys
import time
from statistics import median
from typing import Any

import llama_cpp
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

from benchmarks.drafts.traces import Turn, read

CONTEXT = 2048
DRAFTED = (2, 10)  # tokens at once


def opened(path: str, drafts: int | None) -> Any:
    """Return the file, with drafts of so many tokens; None: without."""
    threads = len(os.sched_getaffinity(0))
    look_up = None if drafts is None else LlamaPromptLookupDecoding(num_pred_tokens=drafts)
    return llama_cpp.Llama(
        path, n_ctx=CONTEXT, n_batch=512, n_threads=threads, n_threads_batch=threads, draft_model=look_up, verbose=False
    )


def seconds_a_token(model: Any, conversations: list[list[Turn]]) -> float:
    """Hold an agent's conversations. Return the seconds of a token in the last one, behind the first of each answer."""
    spent = tokens = 0.0
    for number, turns in enumerate(conversations):
        for turn in turns:
            began, count = 0.0, 0
            for _ in model.generate(list(turn.prompt), temp=0.0, repeat_penalty=1.0):
                began = began or time.perf_counter()
                count += 1
                if count == len(turn.answer):
                    break
            if number == len(conversations) - 1:
                spent, tokens = spent + time.perf_counter() - began, tokens + count - 1
    return spent / tokens


def main(path: str, rounds: int) -> None:
    """Print the figures; all ways take turns."""
    ways = {"without": opened(path, None)} | {str(count): opened(path, count) for count in DRAFTED}
    found: dict[str, dict[str, list[float]]] = {}
    for number in range(-1, rounds):
        for agent, conversations in read().items():
            for way, model in ways.items():
                took = seconds_a_token(model, conversations)
                if number >= 0:
                    found.setdefault(agent, {}).setdefault(way, []).append(took)
    medians = {agent: {way: median(each) for way, each in ways.items()} for agent, ways in found.items()}
    print(json.dumps({"version": f"llama-cpp-python {llama_cpp.__version__}", "agents": medians}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
