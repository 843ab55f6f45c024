"""A test with a model in two processes: the first shows that it answers, the second that it compiles nothing again."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from langchain_gemma_jax.cli.health.findings import Finding, Verdict
from langchain_gemma_jax.config import compile_cache_root

MODEL = "sprout-s"
SECONDS = 20.0  # more is slow for the second process: all programs are compiled by then
FIRST_SECONDS = 300.0  # for the first one, which may have to compile
QUESTION = "What is the weather in Oslo?"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def answer() -> dict[str, Any]:
    """Ask the embedded model in this process, and return figures of its answer."""
    began = time.perf_counter()
    from langchain_gemma_jax import ChatGemmaJax, engine

    model = ChatGemmaJax(model=MODEL, temperature=0, max_tokens=48)
    with_tool = model.bind_tools([TOOL], tool_choice="get_weather")
    first = with_tool.invoke(QUESTION)
    first_s = time.perf_counter() - began
    again = with_tool.invoke(QUESTION)
    since, before = time.perf_counter(), engine().report()
    model.invoke("Tell me about the sea.")
    took, report = time.perf_counter() - since, engine().report()
    calls = [(call["name"], call["args"]) for call in first.tool_calls]
    return {
        "first_answer_s": first_s,
        "tokens_per_s": (report.generated_tokens - before.generated_tokens) / took,
        "compiles": report.compiles,
        "cache_hits": report.cache_hits,
        "cache_misses": report.cache_misses,
        "trips": sum(report.guard_trips.values()),
        "valid_call": bool(calls) and calls[0][0] == "get_weather" and isinstance(calls[0][1].get("city"), str),
        "same_answer": calls == [(call["name"], call["args"]) for call in again.tool_calls],
    }


def self_test() -> Iterator[Finding]:
    """Have two processes answer, one after the other, and yield findings on them."""
    first, first_s = _in_a_process(FIRST_SECONDS)
    if "error" in first:
        yield Finding(
            "self-test", Verdict.BAD, first["error"], "Run `gemma-jax run hello --model sprout-s` to see more."
        )
        return
    yield _first(first)
    second, second_s = _in_a_process(FIRST_SECONDS)
    if "error" in second:
        yield Finding("second process", Verdict.BAD, second["error"], "Run `gemma-jax cache verify`, and this again.")
        return
    yield _second(first, second, first_s, second_s)


def _first(measured: dict[str, Any]) -> Finding:
    text = f"{MODEL}: first answer after {measured['first_answer_s']:.1f} s, {measured['tokens_per_s']:.0f} tokens/s"
    wrong = []
    if not measured["valid_call"]:
        wrong.append("the tool call it had to make is not valid")
    if not measured["same_answer"]:
        wrong.append("the same question got two answers at temperature 0")
    if wrong:
        advice = "This JAX computes wrong numbers here: install another release, and report it."
        return Finding("self-test", Verdict.BAD, f"{text}; {'; '.join(wrong)}", advice)
    if measured["trips"]:
        return Finding(
            "self-test", Verdict.WARN, f"{text}; guards tripped {measured['trips']} times", "See docs/observability.md."
        )
    return Finding("self-test", Verdict.OK, text)


def _second(first: dict[str, Any], second: dict[str, Any], first_s: float, second_s: float) -> Finding:
    text = (
        f"{second['cache_hits']} programs came from the disk, {second['compiles']} were compiled; {second_s:.1f} s in "
        f"all, after {first_s:.1f} s with {first['compiles']} compiled"
    )
    if compile_cache_root() is None:
        return Finding("second process", Verdict.WARN, text, "Each process compiles again: GEMMA_JAX_COMPILE_CACHE=on.")
    if second["compiles"]:
        advice = "The folder cannot be written, or JAX's own settings say where: see docs/runbooks.md, cache trouble."
        return Finding("second process", Verdict.BAD if not second["cache_hits"] else Verdict.WARN, text, advice)
    if second_s > SECONDS:
        return Finding(
            "second process", Verdict.WARN, text, f"More than {SECONDS:.0f} s: this machine is busy, or slow."
        )
    return Finding("second process", Verdict.OK, text)


def _in_a_process(patience: float) -> tuple[dict[str, Any], float]:
    began = time.perf_counter()
    try:
        ended = subprocess.run(  # noqa: S603  this very module
            [sys.executable, "-m", __name__], capture_output=True, text=True, timeout=patience, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        found = json.loads(ended.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {patience:.0f} s"}, patience
    except (ValueError, IndexError):
        last = (ended.stderr.strip().splitlines() or [f"status {ended.returncode}"])[-1]
        return {"error": f"the process ended without an answer: {last}"}, time.perf_counter() - began
    return found, time.perf_counter() - began


if __name__ == "__main__":
    sys.stdout.write(json.dumps(answer()) + "\n")
