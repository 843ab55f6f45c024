"""``gemma-jax profile``: JAX's profiler around the next requests of a program of yours."""

from __future__ import annotations

import argparse
import runpy
import sys
import threading
from pathlib import Path
from typing import Any

from langchain_gemma_jax.cli.terminal.arguments import Verbs, count, verb
from langchain_gemma_jax.cli.terminal.output import complain, say
from langchain_gemma_jax.errors import InputError

QUESTION = "Say hello in one short sentence."


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(
        verbs,
        "profile",
        "have JAX's profiler watch the next requests of a script, or of a question asked for this",
        "gemma-jax profile --requests 3 --skip 1 --output /tmp/trace my_agent.py its arguments",
    )
    parser.add_argument("--requests", type=count, default=1, metavar="N", help="how many are watched; by default 1")
    parser.add_argument(
        "--skip", type=int, default=0, metavar="N", help="requests before those: the first ones are cold; by default 0"
    )
    parser.add_argument("--output", default="gemma-jax-trace", metavar="FOLDER", help="by default gemma-jax-trace")
    parser.add_argument("--model", help="without a script: which model is asked; by default sprout-m")
    parser.add_argument("script", nargs="?", help="a Python file; what follows it are its own arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.skip < 0:
        raise InputError(f"--skip: expected a number of requests from 0, found {options.skip}.")
    if options.script is not None and not Path(options.script).is_file():
        raise InputError(f"profile: expected a Python file, found {options.script!r}.")
    watch = _Watch(options.skip, options.requests, Path(options.output))
    try:
        if options.script is None:
            _ask(options.model, options.skip + options.requests)
        else:
            _run_script(options.script, options.arguments)
    finally:
        watch.end()
    if watch.seen < options.requests:
        complain(
            f"{watch.seen} of {options.requests} requests were watched: no more came behind the first {options.skip}."
        )
        return 1
    say(f"{watch.seen} requests are in {options.output}. Look at them with XProf or https://ui.perfetto.dev.")
    return 0


def _ask(model: str | None, times: int) -> None:
    from langchain_gemma_jax import ChatGemmaJax

    named: dict[str, Any] = {} if model is None else {"model": model}
    asked = ChatGemmaJax(max_tokens=32, **named)
    for _ in range(times):
        asked.invoke(QUESTION)


def _run_script(script: str, arguments: list[str]) -> None:
    before = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [script, *arguments], str(Path(script).resolve().parent)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv, sys.path[0] = before


class _Watch:
    """Has the profiler run from the request behind the skipped ones to the end of the last that is wanted."""

    def __init__(self, skip: int, requests: int, folder: Path) -> None:
        from langchain_gemma_jax import engine
        from langchain_gemma_jax.engine.base.events import Finished, Submitted

        self.seen = 0
        self._skip, self._left, self._folder = skip, requests, folder
        self._numbers: set[int] = set()  # of those that are watched
        self._lock = threading.RLock()
        self._runs = False
        events = engine().events
        self._leave = [events.subscribe(Submitted, self._submitted), events.subscribe(Finished, self._finished)]

    def end(self) -> None:
        """Stop the profiler, if it runs."""
        for leave in self._leave:
            leave()
        with self._lock:
            if self._runs:
                import jax

                self._runs = False
                jax.profiler.stop_trace()

    def _submitted(self, record: object) -> None:
        import jax

        with self._lock:
            if self._skip:
                self._skip -= 1
            elif self._left:
                self._left -= 1
                self._numbers.add(getattr(record, "number", -1))
                if not self._runs:
                    self._runs = True
                    jax.profiler.start_trace(str(self._folder))

    def _finished(self, record: object) -> None:
        with self._lock:
            if getattr(record, "number", -1) in self._numbers:
                self._numbers.discard(getattr(record, "number", -1))
                self.seen += 1
