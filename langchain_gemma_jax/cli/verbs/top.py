"""``gemma-jax top``: the activity of all engines of this user, drawn again every second."""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import time
from collections.abc import Iterator

from langchain_gemma_jax.cli.terminal.arguments import Verbs, count, seconds, verb
from langchain_gemma_jax.cli.terminal.output import BOLD, colored, fitted, live, say, size
from langchain_gemma_jax.cli.verbs.models import written_by_another
from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.residency.status_file import RunningEngine, running_engines

OLD = 10.0  # seconds: the engine of an older status is idle, or hangs
_HOME, _REST, _HIDDEN, _SHOWN = "\x1b[H", "\x1b[J", "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(verbs, "top", "watch your engines: models, memory, requests", "gemma-jax top --once")
    parser.add_argument(
        "--every", type=seconds, default=1.0, metavar="SECONDS", help="seconds between two updates; by default 1"
    )
    parser.add_argument("--times", type=count, metavar="N", help="end after this number of updates")
    parser.add_argument("--once", action="store_true", help="print once and end, as without a terminal")
    parser.add_argument("--json", action="store_true", help="print once, as JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.json:
        say(json.dumps([dataclasses.asdict(each) for each in running_engines()]))
    elif options.once or (not live() and options.times is None):
        for line in picture(running_engines(), size().columns):
            say(line)
    else:
        _watch(options.every, options.times)
    return 0


def _watch(every: float, times: int | None) -> None:
    draws = live()
    if draws:
        say(_HIDDEN, end="")
    before = {each: signal.signal(each, _end) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        looks = 0
        while True:
            columns, lines = size()
            shown = list(picture(running_engines(), columns))
            if draws:
                # The last line stays empty: a terminal that is written to its very end scrolls.
                text = "".join(f"{line}\x1b[K\r\n" for line in shown[: lines - 1])
                say(f"{_HOME}{text}{_REST}", end="")
            else:
                say("\n".join(shown))
            looks += 1
            if looks == times:
                return
            time.sleep(every)
    except KeyboardInterrupt:
        return
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if draws:
            say(_SHOWN, end="")


def _end(number: int, _: object) -> None:
    """End on a signal in the ordinary way, so that the terminal's former screen is restored."""
    raise SystemExit(128 + number)


def picture(engines: list[RunningEngine], columns: int) -> Iterator[str]:
    """Yield the lines that show the activity of engines, each of at most ``columns`` columns."""
    running = sum(engine.activity.running for engine in engines)
    rate = sum(engine.activity.tokens_per_s for engine in engines)
    many = "1 engine" if len(engines) == 1 else f"{len(engines)} engines"
    yield colored(
        fitted(f"gemma-jax top  {time.strftime('%H:%M:%S')}  {many}, {running} requests, {rate:.0f} tokens/s", columns),
        BOLD,
    )
    if not engines:
        yield fitted("No engine of yours runs. Begin one: gemma-jax chat", columns)
    for engine in engines:
        yield ""
        if not engine.readable:
            yield fitted(written_by_another(engine), columns)
            continue
        does = engine.activity
        read = does.prefilled_tokens + does.reused_tokens
        age = time.time() - engine.at
        facts = [
            f"process {engine.process}",
            f"rows {does.running}",
            f"queue {does.waiting}",
            f"{does.tokens_per_s if age < OLD else 0:.0f} tokens/s",
            f"{does.generated_tokens} tokens",
            f"reused {does.reused_tokens / read:.0%}" if read else "reused -",
            f"trips {does.trips}",
            *([f"seen {age:.0f} s ago"] if age >= OLD else []),
        ]
        yield fitted("  ".join(facts), columns)
        width = max(16, min(40, columns - 44))
        yield fitted(f"  {'model':{width}} {'memory':>10} {'KV':>10}  state", columns)
        for model in engine.models:
            idle = f"idle {max(0.0, time.time() - model.used_at):.0f} s"
            use = ("in use" if model.in_use else idle) if model.state == "resident" else model.state
            name, pinned = fitted(model.name, width), ", pinned" * model.pinned
            yield fitted(
                f"  {name:{width}} {show_bytes(model.nbytes):>10} {show_bytes(model.kv):>10}  {use}{pinned}", columns
            )
