"""Time an agent's second conversation with drafts and without, on a real model.

    python -m benchmarks.drafts.drafts build/real/gemma-3-270m-Q4_K_M.gguf
    python -m benchmarks.drafts.drafts build/real/gemma-3-270m-Q4_K_M.gguf --rivals llama-amx

Both conversations of an agent are held in one scope, with drafts from everything, and in another without. They take
turns. Both have the same tokens; a run in which they have not is an error. A rival's own drafts are timed on the
recorded prompts, in its environment.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.drafts.agents import AGENTS, Agent
from benchmarks.drafts.traces import RECORDED, Trace, Turn, write
from benchmarks.running.contenders import ENVIRONMENTS
from langchain_gemma_jax import Completion, Engine, Ladders, Sampling, Served, configure, engine

BARS = {"tool calls": 2.5, "JSON objects": 1.8, "plain chat": 0.97}
MAX_CONTEXT = 2048
ROOT = Path(__file__).parents[2]
SPECULATING = dict.fromkeys(("llama", "llama-amx"), "benchmarks.rivals.llama_speculation")  # by environment


@dataclass
class Measured:
    """Seconds a token behind the first one, of each round, in the second conversation."""

    plain: list[float] = field(default_factory=list)
    drafted: list[float] = field(default_factory=list)
    drafts: list[Completion] = field(default_factory=list)

    @property
    def speed(self) -> float:
        """The speed with drafts beside that without: the median of the rounds."""
        return median(one / other for one, other in zip(self.plain, self.drafted, strict=True))


def hold(running: Engine, served: Served, agent: Agent, scope: str, *, drafts: bool) -> list[list[Completion]]:
    """Hold an agent's conversations in a scope. Return its answers."""
    decode = served.model.tokenizer.decode
    found = []
    for said in agent.conversations:
        text, answers = agent.head, []
        for before in said:
            prompt, sampling = ids_of(served, text + before), sampling_of(agent, len(text), drafts=drafts)
            answers.append(running.submit(served, prompt, sampling, scope=scope).result())
            text = f"{text}{before}{decode(answers[-1].ids).rstrip()}\n"
        found.append(answers)
    return found


def sampling_of(agent: Agent, seed: int, *, drafts: bool) -> Sampling:
    """Return how an agent's answers are drawn: of one seed, each time the same."""
    return Sampling(
        max_tokens=agent.max_tokens, stop=(agent.stop,), temperature=agent.temperature, seed=seed, drafts=drafts
    )


def ids_of(served: Served, text: str) -> list[int]:
    """Return a prompt's ids."""
    tokenizer = served.model.tokenizer
    return [tokenizer.bos_id, *tokenizer.encode_text(text)]


def seconds_a_token(answers: Sequence[Completion]) -> float:
    """Return the seconds of a token, behind the first one of each answer."""
    spent = sum(done.timings.total_s - done.timings.first_token_s for done in answers)
    return spent / max(1, sum(done.generated_tokens - 1 for done in answers))


def measure(running: Engine, served: Served, rounds: int, agents: Mapping[str, Agent] = AGENTS) -> dict[str, Measured]:
    """Return the figures of each agent. The first round is not counted: what it needs is compiled then."""
    found: dict[str, Measured] = {}
    for number in range(-1, rounds):
        for name, agent in agents.items():
            both = {}
            for drafts in (False, True) if number % 2 else (True, False):
                both[drafts] = hold(running, served, agent, f"{name} {number} {drafts}", drafts=drafts)
            plain, drafted = ([done.ids for each in answers for done in each] for answers in both.values())
            if plain != drafted:
                raise RuntimeError(f"{name}: expected the same tokens with drafts and without, found others.")
            if number >= 0:
                measured = found.setdefault(name, Measured())
                measured.plain.append(seconds_a_token(both[False][1]))
                measured.drafted.append(seconds_a_token(both[True][1]))
                measured.drafts += both[True][1]
    return found


def report(found: dict[str, Measured]) -> str:
    """Return the figures as Markdown."""
    head = ["second conversation", "without", "with drafts", "speed", "bar", "accepted by source"]
    lines = [f"| {' | '.join(head)} |", "|---|---|---|---|---|---|"]
    for name, each in found.items():
        sources = sorted({source for done in each.drafts for source in done.drafts})
        counts = []
        for source in sources:
            of = [done.drafts[source] for done in each.drafts if source in done.drafts]
            counts.append(f"{source} {sum(one.accepted for one in of)} of {sum(one.drafted for one in of)}")
        plain, drafted = (f"{1 / median(times):.0f} tok/s" for times in (each.plain, each.drafted))
        lines.append(
            f"| {name} | {plain} | {drafted} | {each.speed:.2f} × | ≥ {BARS[name]} × | {', '.join(counts) or '–'} |"
        )
    return "\n".join(lines)


def of_rival(name: str, model: Path, rounds: int) -> str:
    """Return a rival's own drafts on the same file, as Markdown; why there are none, if it cannot be run."""
    python = ENVIRONMENTS / name / "bin" / "python"
    if name not in SPECULATING:
        return f"{name}: its Python binding offers no drafts."
    if not python.exists():
        return f"{name}: not measured, its environment is missing: scripts/reference_env {name}"
    done = subprocess.run(
        [python, "-m", SPECULATING[name], model, str(rounds)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no word"]
        return f"{name}: ended with {done.returncode}: {last[0]}"
    found = json.loads(done.stdout.splitlines()[-1])
    lines = [f"{name} ({found['version']}), its own prompt look-up:", ""]
    lines += ["| second conversation | without | with drafts | speed | drafted at once |", "|---|---|---|---|---|"]
    for agent, ways in found["agents"].items():
        plain = ways.pop("without")
        best = min(ways, key=ways.__getitem__)
        speeds = f"{1 / plain:.0f} tok/s | {1 / ways[best]:.0f} tok/s | {plain / ways[best]:.2f} ×"
        lines.append(f"| {agent} | {speeds} | {best} |")
    return "\n".join(lines)


def record(running: Engine, served: Served) -> Trace:
    """Return the conversations of all agents, as the model holds them."""
    trace: Trace = {}
    decode = served.model.tokenizer.decode
    for name, agent in AGENTS.items():
        found = hold(running, served, agent, f"record {name}", drafts=False)
        trace[name] = []
        for said, answers in zip(agent.conversations, found, strict=True):
            text, turns = agent.head, []
            for before, done in zip(said, answers, strict=True):
                turns.append(Turn(tuple(ids_of(served, text + before)), done.ids))
                text = f"{text}{before}{decode(done.ids).rstrip()}\n"
            trace[name].append(turns)
    return trace


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or record."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.drafts.drafts", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("model", type=Path, help="a model's file or folder")
    parser.add_argument("--rounds", type=int, default=5, help="5 by default")
    parser.add_argument("--draft", type=int, default=Ladders().draft, help="tokens that are checked at once")
    parser.add_argument("--only", choices=AGENTS, help="one agent alone")
    parser.add_argument("--record", action="store_true", help="write the conversations to trace.json, and time nothing")
    parser.add_argument("--rivals", default="", help="of which the own drafts are timed too: llama-amx, llama, ik")
    options = parser.parse_args(arguments)
    configure(drafts=True, max_context=MAX_CONTEXT, ladders=Ladders(rows=(1,), draft=options.draft), guards="off")
    running = engine()
    served = running.load(str(options.model.resolve()))
    if options.record:
        write(record(running, served), RECORDED)
        return 0
    agents = {name: agent for name, agent in AGENTS.items() if options.only in {None, name}}
    print(report(measure(running, served, options.rounds, agents)))
    costs = running._models.known(served).drafts.costs  # noqa: SLF001  no other way shows them
    print("A pass of n rows, beside one of a row:", *(f"{rows}: {costs.of(rows):.2f}" for rows in range(1, 9)))
    running.close()
    for name in filter(None, options.rivals.split(",")):
        print(f"\n{of_rival(name, options.model.resolve(), options.rounds)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
