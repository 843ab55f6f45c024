"""``gemma-jax bench``: the speed of a model on this machine, also compared with an earlier run."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from langchain_gemma_jax.cli.terminal.arguments import Verbs, count, count_from_2, share, verb
from langchain_gemma_jax.cli.terminal.output import RED, can_show, colored, complain, say
from langchain_gemma_jax.errors import InputError

FORMAT = 1
HIGHER, LOWER = "higher", "lower"
SHOWN_ONLY = frozenset({"load", "first answer, cold"})  # these depend on what is already on the disk


@dataclass(frozen=True)
class Figure:
    """One figure of a benchmark."""

    name: str
    value: float
    unit: str
    better: str  # "higher" or "lower"


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(
        verbs,
        "bench",
        "measure a model's speed on this machine, and compare it with an earlier result",
        "gemma-jax bench --output before.json; pip install -U jax; gemma-jax bench --against before.json",
    )
    parser.add_argument("--model", default="sprout-m", help="the model to measure; by default sprout-m")
    parser.add_argument(
        "--rounds",
        type=count,
        default=5,
        metavar="N",
        help="measurements of each figure, of which the median counts; by default 5",
    )
    parser.add_argument(
        "--tokens", type=count_from_2, default=64, metavar="N", help="tokens of the answer; by default 64"
    )
    parser.add_argument("--prompt", type=count, default=256, metavar="N", help="tokens of the prompt; by default 256")
    parser.add_argument("--output", metavar="FILE", help="write the results to a file, as JSON")
    parser.add_argument("--against", metavar="FILE", help="compare with a file that --output wrote")
    parser.add_argument(
        "--threshold",
        type=share,
        default=0.1,
        metavar="SHARE",
        help="how much slower is an error; by default 10%%",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    before = None if options.against is None else _read(Path(options.against))
    found = measure(options.model, options.rounds, options.tokens, options.prompt)
    if before is not None and (
        other := [name for name in ("model", "device", "tokens", "prompt") if before[name] != found[name]]
    ):
        raise InputError(
            f"--against: {', '.join(f'{name} was {before[name]!r} and is {found[name]!r}' for name in other)}: "
            "that cannot be compared. Measure the same on the same machine."
        )
    if options.output is not None:
        try:
            Path(options.output).write_text(json.dumps(found, indent=1), encoding="utf-8")
        except OSError as error:
            raise InputError(f"--output: {options.output} cannot be written: {error}") from error
    worse = [] if before is None else compare(before, found, options.threshold)
    if options.json:
        say(json.dumps({**found, "worse": worse}))
    else:
        _show(found, before, worse)
    if worse:
        complain(f"slower than before by more than {options.threshold:.0%}: {', '.join(worse)}")
        return 1
    return 0


def measure(model: str, rounds: int, tokens: int, prompt: int) -> dict[str, Any]:
    """Measure a model on this machine. Steady figures are the median of some rounds."""
    import jax

    from langchain_gemma_jax import Sampling, engine

    began = time.perf_counter()
    served = engine().load(model)
    load_s = time.perf_counter() - began
    if prompt + tokens > served.max_context:
        raise InputError(
            f"--prompt and --tokens: expected {served.max_context} together at most, found {prompt} and {tokens}: "
            f"{model} has no room for more."
        )
    vocabulary = served.model.architecture.vocab_size
    numbers = iter(range(10**9))

    def ask(length: int, most: int, times: int = 1) -> tuple[float, list[Any]]:
        """Make ``times`` requests at once, each with a prompt that is new to the engine."""
        since = time.perf_counter()
        asked = [
            engine().submit(
                served, _prompt(next(numbers), length, vocabulary), Sampling(max_tokens=most, ignore_eos=True)
            )
            for _ in range(times)
        ]
        done = [each.result() for each in asked]
        return time.perf_counter() - since, done

    def middle(run: Callable[[], float]) -> float:
        return statistics.median(run() for _ in range(rounds))

    def decoding() -> float:
        _, (done,) = ask(16, tokens)
        return float((done.generated_tokens - 1) / max(1e-9, done.timings.total_s - done.timings.first_token_s))

    def together() -> float:
        took, done = ask(16, tokens, 4)
        return float(sum(each.generated_tokens for each in done)) / took

    cold_s, _ = ask(prompt, 2)
    for length, times in ((prompt, 1), (16, 4), (16, 4), (16, 1)):  # to compile and load all that the next figures need
        ask(length, tokens, times)
    figures = [
        Figure("load", load_s, "s", LOWER),
        Figure("first answer, cold", cold_s, "s", LOWER),
        Figure("first token", middle(lambda: ask(prompt, 1)[1][0].timings.first_token_s), "s", LOWER),
        Figure("decode, 1 row", middle(decoding), "tokens/s", HIGHER),
        Figure("decode, 4 rows", middle(together), "tokens/s", HIGHER),
    ]
    device = jax.devices()[0]
    return {
        "format": FORMAT,
        "model": model,
        "device": f"{device.platform} {device.device_kind}",
        "jax": metadata.version("jax"),
        "tokens": tokens,
        "prompt": prompt,
        "figures": [asdict(figure) for figure in figures],
    }


def compare(before: dict[str, Any], after: dict[str, Any], threshold: float) -> list[str]:
    """Return the names of figures that are worse than before by more than a share. ``SHOWN_ONLY`` are not compared."""
    old = {each["name"]: each["value"] for each in before["figures"]}
    worse = []
    for each in after["figures"]:
        if each["name"] not in old or each["name"] in SHOWN_ONLY:
            continue
        was, now = old[each["name"]], each["value"]
        slower = was / max(now, 1e-12) if each["better"] == HIGHER else now / max(was, 1e-12)
        if slower > 1 + threshold:
            worse.append(each["name"])
    return worse


def _show(figures: dict[str, Any], before: dict[str, Any] | None, worse: list[str]) -> None:
    say(f"{figures['model']} on {figures['device']}, JAX {figures['jax']}")
    old = {} if before is None else {each["name"]: each["value"] for each in before["figures"]}
    times = "×" if can_show("×") else "x"
    for each in figures["figures"]:
        line = f"  {each['name']:20} {each['value']:12.4g} {each['unit']}"
        if each["name"] in old:
            line += f"   {each['value'] / max(old[each['name']], 1e-12):.2f}{times} of {old[each['name']]:.4g}"
        say(colored(line, RED) if each["name"] in worse else line)


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        version = found["format"]
        _ = [found[name] for name in ("model", "device", "tokens", "prompt")]
        figures = [
            Figure(str(each["name"]), float(each["value"]), str(each["unit"]), str(each["better"]))
            for each in found["figures"]
        ]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f"--against: expected a file that --output wrote, and {file} is none: {error}") from error
    if version != FORMAT:
        raise InputError(f"--against: {file} was written by another version of this command. Measure again.")
    if wrong := [f"{each.name} is {each.value}" for each in figures if not 0 < each.value < math.inf]:
        raise InputError(f"--against: {file}: expected figures above 0, found {', '.join(wrong)}.")
    if not {each.name for each in figures} - SHOWN_ONLY:
        raise InputError(f"--against: there is nothing in {file} to compare with.")
    return dict(found)


def _prompt(number: int, length: int, vocabulary: int) -> list[int]:
    """Return a prompt whose first token differs from the others', so that no part of it is in a KV cache."""
    return [10 + (number * 7919 + place * 31) % (vocabulary - 20) for place in range(length)]
