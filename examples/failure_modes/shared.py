"""The shared parts of the four examples: a small model in plain JAX, an agent of this package's, costs side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from langchain_gemma_jax import ChatGemmaJax, CodeReport, Ladders, configure, engine, guard
from langchain_gemma_jax.charts import bars

QUESTIONS = [
    "Convert 12 miles to kilometres.",
    "And 7 miles?",
    "Look up the weekday of 2026-12-24.",
    "Add a note: buy stamps for the Christmas cards, and ask Natalia for the address of her sister in Lyon.",
    "Thank you!",
]
WIDTH, WORDS, LAYERS = 256, 2000, 4


def weights(seed: int = 0, layers: int = LAYERS) -> dict[str, np.ndarray]:
    """A model that has learned nothing, as numpy arrays: as they come from a file."""
    numbers = np.random.default_rng(seed)
    made = {f"layer {each}": numbers.normal(0, 0.05, (WIDTH, WIDTH)).astype(np.float32) for each in range(layers)}
    return made | {"words": numbers.normal(0, 1, (WORDS, WIDTH)).astype(np.float32)}


def forward(params: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
    """The next token, after some tokens: about what a language model does, and as slow to compile for a new shape."""
    x = params["words"][tokens]
    for name in sorted(params):
        if name != "words":
            x = x + jax.nn.gelu(jnp.cumsum(x, axis=0) @ params[name])
    return jnp.argmax(x[-1] @ params["words"].T)


def read(text: str) -> list[int]:
    """Tokens of a text: its words, by their letters."""
    return [sum(map(ord, word)) % WORDS for word in text.split()]


@dataclass
class Cost:
    """The cost of one of the two agents."""

    seconds: float
    compiles: int
    compile_s: float
    copied: int  # bytes, unasked for or again
    trips: int


def badly(run: Callable[[], None], **guards: Any) -> tuple[Cost, CodeReport]:
    """Run the badly written agent with a guard around it, and show what that says, once."""
    said: list[str] = []
    with guard(**guards, on_trip=lambda trip: said.append(str(trip))) as g:
        run()
    print("The badly written agent is caught:\n  " + (said[0] if said else "(by nothing)"))
    report = g.report()
    trips = sum(report.trips_by_guard.values())
    return Cost(report.seconds, report.compiles, report.compile_s, report.bytes_to_device, trips), report


def well(models: tuple[str, ...] = ("sprout-s",), timeout: float | None = None) -> Cost:
    """Run the same conversation on ``ChatGemmaJax``, warmed up before, and count what the guards of the engine say."""
    configure(guards="warn", ladders=Ladders(chunks=(16, 64), capacities=(512,), rows=(1,)))  # one agent, short turns
    for model in models:
        engine().warmup(model, max_context=512, progress=False)
    before, began = engine().report(), time.perf_counter()
    messages: list[AnyMessage] = []
    for number, question in enumerate(QUESTIONS):
        messages.append(HumanMessage(question))
        llm = ChatGemmaJax(
            model=models[number % len(models)], temperature=0, max_tokens=24, timeout=timeout, app="well"
        )
        messages.append(llm.invoke(messages))
        if number == 0:  # a tool answered, on the host
            call = {"name": "convert", "args": {"miles": 12}, "id": "1"}
            messages += [AIMessage("", tool_calls=[call]), ToolMessage("19.3 km", tool_call_id="1")]
    seconds, after = time.perf_counter() - began, engine().report()
    return Cost(
        seconds,
        after.compiles - before.compiles,
        after.compile_s - before.compile_s,
        after.step_bytes_to_device - before.step_bytes_to_device,
        sum(after.guard_trips.values()) - sum(before.guard_trips.values()),
    )


def side_by_side(mode: str, bad: Cost, good: Cost, what: str) -> None:
    """Print both costs, and draw them in a file of this folder's name."""
    rows = [
        ("", "badly written", "ChatGemmaJax"),
        ("seconds", f"{bad.seconds:.2f}", f"{good.seconds:.2f}"),
        ("compiles", str(bad.compiles), str(good.compiles)),
        ("seconds compiling", f"{bad.compile_s:.2f}", f"{good.compile_s:.2f}"),
        (what, f"{bad.copied:,}", f"{good.copied:,}"),
        ("trips of guards", str(bad.trips), str(good.trips)),
    ]
    print()
    for name, first, second in rows:
        print(f"{name:30}{first:>16}{second:>16}")
    drawn = {"badly written": max(bad.seconds, 1e-3), "ChatGemmaJax": max(good.seconds, 1e-3)}
    trips = {"badly written": float(bad.trips), "ChatGemmaJax": float(good.trips)}
    target = Path(f"failure-mode-{mode}.html")
    seconds = bars(f"{mode}: seconds for the same conversation", drawn, {n: f"{s:.2f} s" for n, s in drawn.items()})
    target.write_text(seconds + bars(f"{mode}: trips of guards", trips))
    print(f"\nDrawn in {target.name}")
