"""Conversations in one pool of pages: eight at once, many short ones, and agents that share a system prompt.

    python benchmarks/memory/pool.py
    python benchmarks/memory/pool.py --weights Q4_K_M --rounds 5

The model is the real Gemma 3 270M, which ``scripts/real --fetch`` brings, as the file that it is, as Q8_0, and dense in
bfloat16. Eight conversations at once are compared with the same eight one after another: their tokens must be the same.
What memory grows by is the process's own, after the allocator has given back what is free.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.files.real_files import FILE, dense_folder, file_in
from benchmarks.running.bars import Row, verdict
from benchmarks.running.command import positive, publish, report_options
from benchmarks.running.contenders import say
from benchmarks.running.machine import Others, machine
from benchmarks.running.page import Block
from langchain_gemma_jax import Sampling, configure, engine, load_model
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.private.freed_memory import give_back
from langchain_gemma_jax.private.process_memory import ProcessMemory

WEIGHTS = {"Q4_K_M": 4.0, "Q8_0": 4.0, "bfloat16": 3.0}  # the least that eight at once should be faster by
AT_ONCE, PROMPT, ANSWER = 8, 64, 64
MANY, SHORT = 400, 50  # requests, and tokens of each
AGENTS, SYSTEM, OWN = 16, 4000, 60  # agents, tokens that they share, tokens of each
FORK = 2000


@dataclass(frozen=True)
class Together:
    """Eight conversations, one after another and at once."""

    alone: float  # tokens a second
    at_once: float
    same: bool
    dispatch_ms: float  # of a step of eight
    share: float  # of one conversation's step that host and dispatch take


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="benchmarks/memory/pool.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=positive, default=3, help="3 by default")
    parser.add_argument("--weights", choices=(*WEIGHTS, "all"), default="all")
    report_options(parser)
    options = parser.parse_args(arguments)
    if not FILE.exists():
        parser.error(f"expected {FILE}, found none: scripts/real --fetch brings it")
    others, rows = Others(), list[Row]()
    chosen = [kind for kind in WEIGHTS if options.weights in (kind, "all")]
    configure(drafts=False)
    for kind in chosen:
        say(f"eight at once, {kind}")
        served = engine().load(str(_source(kind)))
        rows += _bars(kind, eight_at_once(engine(), served, options.rounds))
        if kind == "Q4_K_M":
            for part in (_many, _sixteen, _fork):  # each finds no conversation of the one before
                say(f"{part.__name__.strip('_')}, {kind}")
                engine().unload(served)
                served = engine().load(str(_source(kind)))
                rows.append(part(kind, engine(), served))
        engine().unload(served)
    facts, used = machine(), others.cores_used()
    head = f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}."
    lines = [
        f"{head} Others used {used or 0.0:.2f} cores meanwhile.",
        "",
        "| | weights | measured | beside | ratio | bar | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = "–" if row.ratio is None else f"{row.ratio:.2f} ×"
        lines.append(f"| {row.work} | {row.dtype} | {row.ours} | {row.beside} | {ratio} | {row.bar} | {row.verdict} |")
    publish("\n".join(lines), Block("pool figures", "python benchmarks/memory/pool.py"), options, bars=rows)
    return 0


def _source(kind: str) -> Path:
    if kind != "bfloat16":
        return file_in(kind)
    with load_model(FILE, progress=False) as model:
        return dense_folder(model, "bfloat16")


def eight_at_once(engine: Engine, served: Served, rounds: int) -> Together:
    """Time the same conversations one after another and at once."""
    engine.warmup(served, max_context=512, progress=False)
    alone, at_once, same, dispatch, shares = [], [], True, [], []
    for number in range(rounds):
        numbers = random.Random(number)
        prompts = [_ids(numbers, PROMPT) for _ in range(AT_ONCE)]
        before, began = engine.report(), time.perf_counter()
        first = [engine.submit(served, prompt, _greedy(ANSWER), scope=f"{number}a").result().ids for prompt in prompts]
        seconds, after = time.perf_counter() - began, engine.report()
        alone.append(seconds)
        busy = after.host_s - before.host_s + after.dispatch_s - before.dispatch_s
        shares.append(busy / seconds)
        before, began = engine.report(), time.perf_counter()
        running = [engine.submit(served, prompt, _greedy(ANSWER), scope=f"{number}b") for prompt in prompts]
        second = [generation.result().ids for generation in running]
        at_once.append(time.perf_counter() - began)
        after = engine.report()
        dispatch.append(1000 * (after.dispatch_s - before.dispatch_s) / max(1, after.dispatches - before.dispatches))
        same &= first == second
    tokens = AT_ONCE * ANSWER
    return Together(tokens / median(alone), tokens / median(at_once), same, median(dispatch), median(shares))


def _bars(kind: str, found: Together) -> list[Row]:
    ratio, bar = found.at_once / found.alone, WEIGHTS[kind]
    same = "the same tokens" if found.same else "**other tokens**"
    return [
        Row("eight conversations at once", kind, f"{found.at_once:.0f} tok/s, {same}",
            f"one after another: {found.alone:.0f} tok/s", ratio, f"≥ {bar:g} ×", verdict(1 - ratio / bar)),
        Row("a dispatch while eight run", kind, f"{found.dispatch_ms:.2f} ms", "–", None, "≤ 2.2 ms",
            verdict(found.dispatch_ms / 2.2 - 1)),
        Row("host and dispatch, one conversation", kind, f"{100 * found.share:.0f} %", "–", None, "≤ 10 %",
            verdict(found.share / 0.1 - 1)),
    ]  # fmt: skip


def _many(kind: str, engine: Engine, served: Served) -> Row:
    """Have many unrelated requests; memory should grow by their tokens, up to what idle conversations may keep."""
    numbers = random.Random("many")
    engine.submit(served, _ids(numbers, SHORT), _greedy(2)).result()
    give_back()
    before, held = ProcessMemory.now().private, 0
    for _ in range(MANY):
        engine.submit(served, _ids(numbers, SHORT - 2), _greedy(2)).result()
        held = max(held, engine.report().kv_bytes)
    give_back()
    grown, tokens = ProcessMemory.now().private - before, MANY * SHORT * _token_bytes(served)
    least, ratio = min(tokens, held), grown / min(tokens, held)
    more = f"+{grown / 2**20:.0f} MB, at most {held / 2**20:.0f} MB of pages"
    beside = f"their tokens, or the bound of idle ones: {least / 2**20:.0f} MB"
    return Row(f"{MANY} unrelated requests of {SHORT} tokens", kind, more, beside, ratio, "≤ 1.1 ×",
               verdict(ratio / 1.1 - 1))  # fmt: skip


def _sixteen(kind: str, engine: Engine, served: Served) -> Row:
    """Have agents on one system prompt; it should be held once."""
    numbers = random.Random("agents")
    system = _ids(numbers, SYSTEM)
    before = _settled(engine)
    engine.submit(served, [*system, *_ids(numbers, OWN)], _greedy(8), system=SYSTEM).result()
    one = _settled(engine) - before
    running = [
        engine.submit(served, [*system, *_ids(numbers, OWN)], _greedy(8), system=SYSTEM) for _ in range(AGENTS - 1)
    ]
    for generation in running:
        generation.result()
    all_of_them = _settled(engine) - before
    return Row(f"{AGENTS} agents on one system prompt of {SYSTEM} tokens", kind, f"{all_of_them / 2**20:.1f} MB",
               f"one agent: {one / 2**20:.1f} MB", all_of_them / one, "–", "–")  # fmt: skip


def _fork(kind: str, engine: Engine, served: Served) -> Row:
    """Continue one conversation in two ways; its pages are shared up to the one that is written to."""
    numbers = random.Random("fork")
    prefix = _ids(numbers, FORK)
    engine.submit(served, prefix, _greedy(1), system=FORK).result()
    engine.submit(served, [*prefix, *_ids(numbers, OWN)], _greedy(8), system=FORK).result()
    before = _settled(engine)
    engine.submit(served, [*prefix, *_ids(numbers, OWN)], _greedy(8), system=FORK).result()
    grown, page = _settled(engine) - before, 64 * _token_bytes(served)
    beside = f"a page of each layer: {page / 2**10:.0f} KB"
    return Row(f"a fork of {FORK} tokens", kind, f"{grown / 2**10:.0f} KB more", beside,
               grown / page, "≤ 1 page copied, 1 of its own", verdict(grown / (2 * page) - 1))  # fmt: skip


def _settled(engine: Engine) -> int:
    """Return the bytes of conversations once the engine has noted what the last one left."""
    while engine.report().running:
        time.sleep(0.01)
    time.sleep(0.2)
    return engine.report().kv_bytes


def _token_bytes(served: Served) -> int:
    """Return the bytes of one token in all layers."""
    config = served.model.config
    pairs = sum(layer.kv_heads * layer.head_dim for layer in config.layers if layer.kv_from is None)
    return 2 * pairs * 2 + 4  # keys and values of 16 bits, and the id


def _ids(numbers: random.Random, count: int) -> list[int]:
    return [numbers.randint(1000, 200_000) for _ in range(count)]


def _greedy(count: int) -> Sampling:
    return Sampling(temperature=0.0, max_tokens=count, ignore_eos=True)


if __name__ == "__main__":
    sys.exit(main())
