"""How a process ends while threads in the background compile and fetch: as it would have, at once, without a signal."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from langchain_gemma_jax.compile_cache.store import Store
from tests.engine.faulty_process import SEED, environment_of, files, folder_of, start
from tests.engine.fresh_process import answer

pytestmark = pytest.mark.timeout(900)

PRELUDE = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts the tests may ignore it
from langchain_gemma_jax import Ladders, Sampling, configure, engine
from langchain_gemma_jax.errors import ClosedError

configure(ladders=Ladders(chunks=(16,), capacities=(64, 128), rows=(1, 2), draft=3), drafts=False)
FOLDER, PAUSE = sys.argv[1], float(sys.argv[2])

def say(word):
    print(word, flush=True)

def ask():
    return engine().submit(engine().load(FOLDER), list(range(2, 14)), Sampling(max_tokens=20, ignore_eos=True))

def in_thread(work):
    def run():
        try:
            work()
        except ClosedError:
            pass
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
"""

# What it is doing. Then it pauses, and ends.
FIRST_TOKEN = "next(iter(ask()))"
WARMING_UP = """
    served = engine().load(FOLDER)
    warming_up = in_thread(lambda: engine().warmup(served))
    while not engine()._owner.background.busy:
        time.sleep(0.001)
"""
WARM = """
    served = engine().load(FOLDER)
    def again_and_again():
        while True:
            engine().warmup(served)
    engine().warmup(served)
    in_thread(again_and_again)
"""
LOADING = "in_thread(lambda: ask().result())"
LONG_COMPILES = """
    import jax, jax.numpy as jnp
    served = engine().load(FOLDER)

    def long(x):
        for index in range(600):
            x = jnp.sin(x @ x) + jnp.cumsum(x, axis=0) * jnp.float32(index)
        return x

    jax.config.update("jax_disable_most_optimizations", False)
    jax.config.update("jax_enable_compilation_cache", False)
    lowered = [jax.jit(long).lower(jnp.ones((64, 64 + index))[:, :64]) for index in range(2)]
    for one in lowered:
        engine()._owner.background.submit(one.compile)
    time.sleep(0.5)
"""
WAITING = "generation = ask()"  # for another process, which this test is

RETURN = "say('leaving')"
EXIT = "say('leaving'); sys.exit(3)"
RAISE = "say('leaving'); raise ValueError('by the script')"
CLOSE = """
    say('leaving')
    assert engine().close()
"""
CLOSE_AT_ONCE = """
    say('leaving')
    assert not engine().close(0.01)
"""
IN_WARM_UP = """
    served = engine().load(FOLDER)
    say('waiting')
    engine().warmup(served)
"""
IN_RESULT = """
    generation = ask()
    say('waiting')
    generation.result()
"""


@dataclass(frozen=True)
class Way:
    """A process's activity, and how it ends."""

    doing: str
    ending: str = ""
    """Empty: it is interrupted when it says that it is waiting."""
    code: int = -signal.SIGINT
    error: str = "KeyboardInterrupt"
    """The last line on standard error."""
    longest: float = 1.5
    """The pause is up to so many seconds."""
    """Seconds from the last word, or the interruption, to the end."""
    cache: str = "new"
    """"good": another process has filled it. "claimed": another process is compiling what this one needs."""


def ways(name: str, doing: str, **options: object) -> dict[str, Way]:
    """To return, to leave with a status, and to fail."""
    return {
        f"{name}, returns": Way(doing, RETURN, 0, "", **options),  # type: ignore[arg-type]
        f"{name}, exits": Way(doing, EXIT, 3, "", **options),  # type: ignore[arg-type]
        f"{name}, raises": Way(doing, RAISE, 1, "ValueError: by the script", **options),  # type: ignore[arg-type]
    }


WAYS = {
    **ways("first token", FIRST_TOKEN, longest=0.2),
    **ways("warming up", WARMING_UP),
    "warming up, interrupted": Way(IN_WARM_UP),
    "warming up, closes": Way(WARMING_UP, CLOSE, 0, ""),  # what had begun is waited for
    "warming up, closes at once": Way(WARMING_UP, CLOSE_AT_ONCE, 0, ""),
    **ways("warm", WARM, longest=0.5, cache="good"),
    **ways("loading", LOADING, longest=0.4, cache="good"),
    **ways("long compiles", LONG_COMPILES, longest=0.5, cache="good"),
    "long compiles, interrupted": Way(LONG_COMPILES + IN_WARM_UP, longest=0.5),
    "long compiles, closes at once": Way(LONG_COMPILES, CLOSE_AT_ONCE, 0, "", cache="good"),
    "waiting, exits": Way(WAITING, EXIT, 3, "", cache="claimed"),
    "waiting, interrupted": Way(IN_RESULT, cache="claimed"),
    "waiting, closes": Way(WAITING, CLOSE, 0, "", cache="claimed"),
}


@dataclass(frozen=True)
class Home:
    model: Path
    measured: Path
    good: Path


@pytest.fixture(scope="module")
def home(tiny_folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("home")
    return Home(tiny_folder, place / "measured", place / "good")


@pytest.fixture(scope="module")
def filled(home):
    """With a cache that another process has filled."""
    answer(start(home.model, home.good, home.measured, "turns=1"))
    return home


def ended(name: str, home: Home, place: Path) -> None:
    """Let a process end in this way, and look at what it ends with."""
    way = WAYS[name]
    pause = random.Random(f"{SEED} {place}").uniform(0, way.longest)
    script = place / "script.py"
    parts = [PRELUDE, way.doing, "time.sleep(PAUSE)" if way.ending else "", way.ending]
    script.write_text("\n".join(textwrap.dedent(part) for part in parts))
    root = home.good if way.cache == "good" else place / "xla"
    with ExitStack() as held:
        if way.cache == "claimed":
            store = Store(root / folder_of(home.good).relative_to(home.good), root=root)
            for program in files(home.good):
                assert held.enter_context(store.claim(program, patience=0))
        child = subprocess.Popen(
            [sys.executable, "-W", "error", str(script), str(home.model), str(pause)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment_of(root, home.measured),
        )
        assert child.stdout is not None
        for line in child.stdout:
            if line == "waiting\n":
                time.sleep(pause)
                child.send_signal(signal.SIGINT)
        _, errors = child.communicate()
    told = f"{name}, after {pause:.2f} s: {child.returncode}: {errors}"
    assert child.returncode == way.code, told
    if way.error:
        assert errors.strip().endswith(way.error), told
        assert "Exception ignored" not in errors, told
        assert "Exception in thread" not in errors, told
    else:
        assert errors == "", told


def all_end(names: list[str], home: Home, place: Path) -> None:
    places = [place / str(number) for number in range(len(names))]
    for each in places:
        each.mkdir()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda pair: ended(pair[0], home, pair[1]), zip(names, places, strict=True)))


QUICK = ["first token, exits", "warming up, interrupted"]


@pytest.mark.long
def test_a_process_ends_at_once_whatever_is_done_in_the_background(home, tmp_path):
    all_end(QUICK, home, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_each_way_to_end_a_few_times(filled, tmp_path, name):
    all_end([name] * 6, filled, tmp_path)
