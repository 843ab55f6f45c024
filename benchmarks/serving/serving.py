"""Time a server beside the engine in the process itself, and put it under load.

    python benchmarks/serving/serving.py                         # sprout-s
    python benchmarks/serving/serving.py --model sprout-m --clients 64 --requests 2000
    python benchmarks/serving/serving.py --model build/real/gemma-3-270m-Q8_0.gguf --rival  # and llama-cpp-python

Three questions: how long a fresh process takes through the socket, from its import to its first token, and whose time
it is; what the wire adds to a token; and whether many clients at once all get the answer that each of them gets alone.
Client and server are on one machine, so what one takes the other has not: ratios are of runs in turns.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.bars import Row, verdict
from benchmarks.running.command import json_option, write_json
from benchmarks.serving.serving_rival import beside_rival
from langchain_gemma_jax import ChatGemmaJax, GemmaJaxError, ServerUnreachableError

ROOT = Path(__file__).parents[2]
BAR_FRESH_S, BAR_TOKEN_S, BAR_THROUGHPUT = 0.3, 0.001, 0.97
ALL_RIGHT = "answers lost, or not what they are alone"
WORDS = (
    "Hello!",
    "Thank you!",
    "Who are you?",
    "What can you do?",
    "Good morning.",
    "Tell me a joke.",
    "Count to ten.",
)
SCHEMA = {"title": "Note", "type": "object", "properties": {"text": {"type": "string", "maxLength": 12}},
          "required": ["text"]}  # fmt: skip
FRESH = """
import sys, time

def now():
    return time.perf_counter(), time.process_time()

began = now()
import langchain_core.language_models.chat_models, langchain_core.messages, langchain_core.outputs
floor = now()
from langchain_gemma_jax import ChatGemmaJax
imported = now()
next(ChatGemmaJax(server=sys.argv[1], temperature=0, max_tokens=1).stream("Hello!"))
done = now()
for one, other in ((began, floor), (floor, imported), (imported, done)):
    print(other[0] - one[0], other[1] - one[1])
"""


def ring(times: int) -> str:
    """Ring a bell."""
    return "ding" * times


@contextmanager
def served(model: str) -> Iterator[tuple[str, int]]:
    """Give the address of a server that is ready, and the number of its process."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        place = f"{folder}/bench.sock"
        command = [sys.executable, "-m", "langchain_gemma_jax.cli", "serve", model, "--socket", place, "--no-warmup"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as server:
            try:
                while True:
                    try:
                        ChatGemmaJax(server=f"unix:{place}", max_tokens=1).invoke("Hello!")
                        break
                    except ServerUnreachableError:
                        if server.poll() is not None:
                            raise
                        time.sleep(0.1)
                yield f"unix:{place}", server.pid
            finally:
                server.terminate()


def fresh(address: str, rounds: int) -> list[tuple[float, float]]:
    """The seconds, by the clock and of the processor, of the best process: LangChain's import, ours, the answer."""
    found = []
    for _ in range(rounds + 1):  # the first one writes bytecode
        done = subprocess.run(
            [sys.executable, "-c", FRESH, address], cwd=ROOT, capture_output=True, text=True, check=True
        )
        found.append([(float(clock), float(work)) for clock, work in map(str.split, done.stdout.splitlines())])
    return min(found[1:], key=lambda parts: sum(clock for clock, _ in parts))


def forked(address: str, rounds: int) -> float:
    """The seconds of the best process that is forked from one which has imported all that is needed, to its token."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["__main__", "langchain_gemma_jax.chat_model", "langchain_gemma_jax.client.remote_model"]
    )
    found = []
    for _ in range(rounds + 1):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=first_token, args=(address, time.perf_counter(), there))
        process.start()
        found.append(float(here.recv()))
        process.join()
    return min(found[1:])


def first_token(address: str, began: float, told: Connection) -> None:
    """Tell how long it took until the first token, in a process that was started for it."""
    next(ChatGemmaJax(server=address, temperature=0, max_tokens=1).stream("Hello!"))
    told.send(time.perf_counter() - began)


def streamed(model: ChatGemmaJax, tokens: int) -> tuple[float, int]:
    """The seconds that the chunks of a stream took, the first one left out, and how many there were."""
    stream = model.stream("Hello!", max_tokens=tokens, logit_bias={1: -100.0, 106: -100.0})
    next(stream)
    began, count = time.perf_counter(), 0
    for _ in stream:
        count += 1
    return time.perf_counter() - began, count


def work_of(process: int) -> float:
    """The processor's seconds that a process has taken, as Linux counts them."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def per_token(
    address: str, process: int, model: str, rounds: int, tokens: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The seconds of a token, by the clock and of the processor: here, and through the socket; in turns, the best."""
    here, there = ChatGemmaJax(model=model, temperature=0, server="off"), ChatGemmaJax(server=address, temperature=0)
    found: dict[str, list[tuple[float, float]]] = {"here": [], "there": []}
    for _ in range(rounds + 1):
        for name, asked in (("here", here), ("there", there)):
            before = work_of(process) + time.process_time()
            clock, count = streamed(asked, tokens)
            found[name].append((clock / count, (work_of(process) + time.process_time() - before) / count))
    return best_of(found["here"][1:]), best_of(found["there"][1:])


def best_of(times: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the least by the clock, and the least of the processor."""
    return min(clock for clock, _ in times), min(worked for _, worked in times)


def ask(model: ChatGemmaJax, number: int) -> str:
    """One request of one of four kinds, and what came of it."""
    text = f"{WORDS[number % len(WORDS)]} {number % 5}"
    match number % 4:
        case 0:
            return model.invoke(text).text
        case 1:
            return "".join(chunk.text for chunk in model.stream(text))
        case 2:
            answer = model.bind_tools([ring], tool_choice="any").invoke(text)
            return f"{[(call['name'], call['args']) for call in answer.tool_calls]} {len(answer.invalid_tool_calls)}"
    return model.invoke(text, response_format={"type": "json_schema", "json_schema": {"schema": SCHEMA}}).text


def load(model: ChatGemmaJax, clients: int, requests: int) -> tuple[Counter[str], list[float], float]:
    """Counts of many clients' requests at once: answers that were right, wrong or lost; and their seconds."""
    kinds = 4 * 5 * len(WORDS)
    alone = [ask(model, number) for number in range(kinds)]
    left, lock = iter(range(requests)), threading.Lock()
    came: Counter[str] = Counter()
    times: list[float] = []

    def client() -> None:
        while True:
            with lock:
                number = next(left, None)
            if number is None:
                return
            began = time.perf_counter()
            try:
                what = "right" if ask(model, number) == alone[number % kinds] else "mixed up"
            except GemmaJaxError as error:
                what = f"lost: {type(error).__name__}"
            with lock:
                came[what] += 1
                times.append(time.perf_counter() - began)

    began = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return came, times, time.perf_counter() - began


def judged(value: float, bar: float) -> str:
    """Return the verdict on a bar: reached or missed."""
    return "reached" if value <= bar else f"missed by {value / bar:.2f} times"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/serving/serving.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--model", default="sprout-s")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=800)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--only", choices=("fresh", "wire", "load"), help="one of the three questions")
    parser.add_argument("--rival", action="store_true", help="instead: the load beside llama-cpp-python's server")
    json_option(parser)
    options = parser.parse_args(arguments)
    if options.rival:
        return beside_rival(Path(options.model).absolute(), options.clients, options.requests)
    wanted, bars = {options.only} if options.only else {"fresh", "wire", "load"}, list[Row]()
    with served(options.model) as (address, process):
        if "fresh" in wanted:
            bars += tell_fresh(address, options.rounds, options.model)
        if "wire" in wanted:
            bars += tell_wire(address, process, options.model, options.rounds, options.tokens)
        if "load" in wanted:
            bars += tell_load(address, options.model, options.clients, options.requests)
    write_json(options.json, None, bars)
    return 0 if all(row.verdict == "reached" for row in bars if row.work == ALL_RIGHT) else 1


def at_most(work: str, model: str, value: float, bar: float, shown: Callable[[float], str]) -> Row:
    """Return what became of a bar that no rival stands beside."""
    return Row(work, model, shown(value), "–", None, f"≤ {shown(bar)}", verdict(value / bar - 1))


def tell_fresh(address: str, rounds: int, model: str) -> list[Row]:
    """Print how long a fresh process takes, and whose time it is; give what became of the bars."""
    parts = fresh(address, rounds)
    total = sum(clock for clock, _ in parts)
    print(f"A fresh process, import to first token: {total:.3f} s; bar {BAR_FRESH_S}: {judged(total, BAR_FRESH_S)}")
    for what, (clock, work) in zip(("LangChain's import", "our import", "the answer"), parts, strict=True):
        print(f"  {what}: {clock:.3f} s ({clock / total:.0%}), of the processor {work:.3f} s")
    best = forked(address, rounds)
    print(f"Forked from one that has imported: {best:.3f} s; bar {BAR_FRESH_S}: {judged(best, BAR_FRESH_S)}")
    works = {"first token through the socket, from the import": total, "the same, forked from what imported": best}
    return [at_most(work, model, value, BAR_FRESH_S, lambda each: f"{each:.2f} s") for work, value in works.items()]


def tell_wire(address: str, process: int, model: str, rounds: int, tokens: int) -> list[Row]:
    """Print what the wire adds to a token; give what became of its bar."""
    here, there = per_token(address, process, model, rounds, tokens)
    added, worked = there[0] - here[0], there[1] - here[1]
    print(f"The wire's part of a streamed chunk: {added * 1e3:.2f} ms; bar 1 ms: {judged(added, BAR_TOKEN_S)}")
    print(f"  by the clock {here[0] * 1e3:.2f} and {there[0] * 1e3:.2f} ms")
    print(f"  of the processor {here[1] * 1e3:.2f} and {there[1] * 1e3:.2f} ms, both processes together")
    print(f"  which is {worked / here[1]:.0%} of the processor's time more, and {added / here[0]:.0%} by the clock")
    work = "a streamed token's way through the socket"
    return [at_most(work, model, added, BAR_TOKEN_S, lambda each: f"{each * 1e3:.2f} ms")]


def tell_load(address: str, model: str, clients: int, requests: int) -> list[Row]:
    """Print what many clients see at once, here and through the socket; give what became of the bars."""
    settings: dict[str, Any] = {"temperature": 0, "max_tokens": 16, "dtype": "float32", "model": model}
    rates: dict[str, list[float]] = {}
    wrong = 0
    for where in ("off", address, "off", address):
        came, times, took = load(ChatGemmaJax(server=where, **settings), clients, requests)
        cuts, name = quantiles(times, n=20), "in this process" if where == "off" else "through the socket"
        print(f"{clients} clients, {requests} requests of four kinds, {name}: {dict(came)}")
        print(f"  {requests / took:.1f} a second, p50 {median(times):.3f} s, p95 {cuts[18]:.3f} s", flush=True)
        rates.setdefault(name, []).append(requests / took)
        wrong += requests - came["right"]
    here, there = (max(each) for each in rates.values())
    print(f"  through the socket: {there / here:.3f} times as many a second, the better run of each")
    share, beside = there / here, f"in this process: {here:.1f} a second"
    return [
        Row(f"{clients} clients through the socket", model, f"{there:.1f} a second", beside, share,
            f"≥ {BAR_THROUGHPUT} ×", verdict(1 - share / BAR_THROUGHPUT)),
        Row(ALL_RIGHT, model, str(wrong), "–", None, "≤ 0", verdict(float(wrong))),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
