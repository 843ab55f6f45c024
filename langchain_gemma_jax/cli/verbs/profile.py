"""``gemma-jax profile``: JAX's profiler around the next requests of a user's script."""

from __future__ import annotations

import argparse
import runpy
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from langchain_gemma_jax.cli.terminal.arguments import Verbs, count, count_from_0, verb
from langchain_gemma_jax.cli.terminal.output import complain, say
from langchain_gemma_jax.errors import InputError

QUESTION = "Say hello in one short sentence."


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(
        verbs,
        "profile",
        "run JAX's profiler during requests of a script, or of a built-in question",
        "gemma-jax profile --requests 3 --skip 1 --output /tmp/trace my_agent.py its arguments",
    )
    parser.add_argument(
        "--requests", type=count, default=1, metavar="N", help="the number of requests to profile; by default 1"
    )
    parser.add_argument(
        "--skip",
        type=count_from_0,
        default=0,
        metavar="N",
        help="requests to skip before them, because the first ones are cold; by default 0",
    )
    parser.add_argument(
        "--output",
        default="gemma-jax-trace",
        metavar="FOLDER",
        help="where the profile goes; by default gemma-jax-trace",
    )
    parser.add_argument("--model", help="without a script, the model to profile; by default sprout-m")
    parser.add_argument("script", nargs="?", help="a Python file; what follows it are its own arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.script is not None and not Path(options.script).is_file():
        raise InputError(f"profile: expected a Python file, found {options.script!r}.")
    folder = Path(options.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output: expected a folder that can be written to, found {folder}: {error}") from error
    watch, status = _Watch(options.skip, options.requests, folder), 0
    try:
        if options.script is None:
            _ask(options.model, options.skip + options.requests)
        else:
            status = _run_script(options.script, options.arguments)
    finally:
        watch.end()
    if watch.problem is not None:
        complain(f"JAX's profiler could not be used: {watch.problem}")
        return 1
    if watch.seen < options.requests:
        complain(
            f"{watch.seen} of {options.requests} requests were watched: no more came behind the first {options.skip}."
        )
        return 1
    say(f"{watch.seen} requests are in {options.output}. Look at them with XProf or https://ui.perfetto.dev.")
    return status


def _ask(model: str | None, times: int) -> None:
    from langchain_gemma_jax import ChatGemmaJax

    named: dict[str, Any] = {} if model is None else {"model": model}
    asked = ChatGemmaJax(max_tokens=32, **named)
    for _ in range(times):
        asked.invoke(QUESTION)


def _run_script(script: str, arguments: list[str]) -> int:
    """Run a script as Python does, and return its exit status. Its errors are printed as Python prints them."""
    before = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [script, *arguments], str(Path(script).resolve().parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        complain(str(ended.code))
        return 1
    except Exception as error:  # noqa: BLE001  any error of the script is printed
        _show(error, script)
        return 1
    finally:
        sys.argv, sys.path[0] = before
    return 0


def _show(error: Exception, script: str) -> None:
    """Print an error of a script, with a traceback that begins in the script."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != script:
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)


class _Watch:
    """Runs the profiler from the first request after the skipped ones to the end of the last one to watch."""

    def __init__(self, skip: int, requests: int, folder: Path) -> None:
        from langchain_gemma_jax import engine
        from langchain_gemma_jax.engine.base.events import Finished, Submitted

        self.seen = 0
        self.problem: str | None = None
        self._skip, self._left, self._folder = skip, requests, folder
        self._numbers: set[int] = set()  # of the watched requests
        self._lock = threading.RLock()
        self._runs = False
        self._over = threading.Event()  # all watched requests have ended, or the script has
        # Writing a trace takes a second or more, for which the engine's own thread has no time.
        self._writing = threading.Thread(target=self._write_when_over, name="gemma-jax-profile", daemon=True)
        self._writing.start()
        events = engine().events
        self._leave = [events.subscribe(Submitted, self._submitted), events.subscribe(Finished, self._finished)]

    def end(self) -> None:
        """Stop the profiler, if it runs, and wait until its trace is written."""
        for leave in self._leave:
            leave()
        self._over.set()
        self._writing.join()

    def _write_when_over(self) -> None:
        self._over.wait()
        with self._lock:
            self._left = 0
            if not self._runs:
                return
            self._runs = False
        import jax

        try:
            jax.profiler.stop_trace()
        except Exception as error:  # noqa: BLE001  the script may have stopped it, or the disk may be full
            self.problem = str(error)

    def _submitted(self, record: object) -> None:
        import jax

        with self._lock:
            if self._skip:
                self._skip -= 1
            elif self._left:
                self._left -= 1
                self._numbers.add(getattr(record, "number", -1))
                if not self._runs:
                    try:
                        jax.profiler.start_trace(str(self._folder))
                    except Exception as error:  # noqa: BLE001  the script may use it itself
                        self.problem = str(error)
                        self._left = 0
                        return
                    self._runs = True

    def _finished(self, record: object) -> None:
        with self._lock:
            if getattr(record, "number", -1) in self._numbers:
                self._numbers.discard(getattr(record, "number", -1))
                self.seen += 1
                if not self._left and not self._numbers:
                    self._over.set()
