"""A process of its own that serves the tiny model: what it answers, and what it compiled by JAX's own events.

    python tests/engine/fresh_process.py FOLDER [warmup] [turns=N]

Prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.requests.prompt import MediaSpan, TokenSpan
    from langchain_gemma_jax.models.seams.media_support import MediaSupport

ROOT = Path(__file__).parents[2]
CACHE = "GEMMA_JAX_COMPILE_CACHE"


def start(folder: Path, cache: Path | str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Such a process, started. ``cache`` is where compiled programs are kept."""
    # All of them multiply in the same way, whatever they would measure, and compile without much ado.
    measured = folder if isinstance(cache, str) else cache.parent
    defaults = {"GEMMA_JAX_CACHE_DIR": str(measured / "measured"), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    return subprocess.Popen(
        [sys.executable, "-W", "error::UserWarning", str(Path(__file__)), str(folder), *arguments],
        env=os.environ | {CACHE: str(cache), "PYTHONPATH": str(ROOT)} | defaults | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str], timeout: float = 90) -> dict[str, object]:
    """Return its output. Anything on standard error, and any other exit than a good one, is an error."""
    out, err = process.communicate(timeout=timeout)
    if process.returncode != 0 or err:
        raise AssertionError(f"the process ended with {process.returncode}: {err}")
    found: dict[str, object] = json.loads(out)
    return found


def shown(media: MediaSupport, number: int) -> list[TokenSpan | MediaSpan]:
    """Return the spans that stand in a prompt for a picture."""
    import numpy as np

    from langchain_gemma_jax.engine.requests.prompt import MediaSpan, TokenSpan
    from langchain_gemma_jax.media.medium import Picture

    placed = media.place(Picture(np.full((20, 30, 3), 40 * number, np.uint8)))
    span = MediaSpan(placed.placeholders, placed.digest, placed.inputs)
    return [TokenSpan(placed.before), span, TokenSpan((*placed.after, 5))]


def talk(folder: str, *options: str) -> dict[str, object]:
    """Ten turns of a conversation, each of which sends all that was said."""
    from jax import monitoring

    events: Counter[str] = Counter()
    monitoring.register_event_duration_secs_listener(lambda event, *_, **__: events.update([event]))
    monitoring.register_event_listener(lambda event, **_: events.update([event]))

    from langchain_gemma_jax import Ladders, Sampling, configure, engine
    from langchain_gemma_jax.engine.requests.prompt import Prompt, TokenSpan

    configure(ladders=Ladders(chunks=(16,), capacities=(64, 128), rows=(1,), draft=0), guards="raise")
    served = engine().load(folder)
    if "warmup" in options:
        engine().warmup(served)
    turns = next((int(option[6:]) for option in options if option.startswith("turns=")), 10)
    said, answers = [TokenSpan((2,))], []
    for turn in range(turns):
        said.append(TokenSpan(tuple(range(10 + turn, 14 + turn))))
        if served.model.media is not None and turn < 2:  # of a model that sees
            said += shown(served.model.media, turn)
        done = engine().submit(served, Prompt(tuple(said)), Sampling(max_tokens=4, ignore_eos=True)).result()
        said.append(TokenSpan(done.ids))
        answers.append(done.ids)
    report = engine().report()
    return {
        "answers": answers,
        "compiled": events["/jax/core/compile/backend_compile_duration"] - events["/jax/compilation_cache/cache_hits"],
        "lowered": events["/jax/core/compile/jaxpr_to_mlir_module_duration"],
        "programs": report.programs,
        "compiles": report.compiles,
        "hits": report.cache_hits,
        "misses": report.cache_misses,
        "saved": report.cache_saved_s,
    }


if __name__ == "__main__":
    print(json.dumps(talk(*sys.argv[1:])))  # noqa: T201
