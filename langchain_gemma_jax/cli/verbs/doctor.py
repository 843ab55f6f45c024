"""``gemma-jax doctor``: checks of this machine, with advice for what is wrong."""

from __future__ import annotations

import argparse
import dataclasses
import json
from textwrap import wrap

from langchain_gemma_jax import __version__
from langchain_gemma_jax.cli.health.findings import Finding, Verdict, worst
from langchain_gemma_jax.cli.terminal.arguments import Verbs, verb
from langchain_gemma_jax.cli.terminal.output import GREEN, RED, YELLOW, colored, printable, say, size

COLORS = {Verdict.OK: GREEN, Verdict.WARN: YELLOW, Verdict.BAD: RED}
SUMMARIES = {
    Verdict.OK: "All is well.",
    Verdict.WARN: "It works. What is marked `warn` costs time or memory.",
    Verdict.BAD: "Something is wrong: what is marked `bad` has to be put right first.",
}


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(
        verbs,
        "doctor",
        "check JAX, memory, the compile cache and a model on this machine, and say what to do",
        "gemma-jax doctor --json",
    )
    parser.add_argument("--quick", action="store_true", help="skip the self-test, which takes up to 20 seconds")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from langchain_gemma_jax.cli.health.machine import look
    from langchain_gemma_jax.cli.health.self_test import self_test

    found: list[Finding] = []
    for part in (look(__version__), *(() if options.quick else (self_test(),))):
        for finding in part:
            found.append(finding)
            if not options.json:
                _show(finding)
    verdict = worst(found)
    if options.json:
        findings = [dataclasses.asdict(finding) for finding in found]
        say(json.dumps({"verdict": verdict, "summary": SUMMARIES[verdict], "findings": findings}))
    else:
        say()
        say(colored(SUMMARIES[verdict], COLORS[verdict]))
    return 1 if verdict is Verdict.BAD else 0


def _show(finding: Finding) -> None:
    columns = max(40, size().columns)
    lines = wrap(printable(f"{finding.what}: {finding.found}"), columns - 7)
    lines += wrap(printable(f"-> {finding.advice}"), columns - 7) if finding.advice else []
    say(f"{colored(f'{finding.verdict:4}', COLORS[finding.verdict])}  {lines[0]}")
    for line in lines[1:]:
        say(f"      {line}")
