"""One engine a process, from the first use to the end of the process; and none in a process that was forked."""

from __future__ import annotations

import os
import signal
import textwrap
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from langchain_gemma_jax import stopping
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.loop import owner
from langchain_gemma_jax.errors import ClosedError, CorruptCheckpointError, InputError
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.open_model import ModelFiles
from tests.engine.child import run
from tests.engine.faults_support import SMALL, assert_works, copied, in_threads
from tests.engine.model_files import FilesOf


@dataclass
class Loads:
    """A model whose files cannot be opened a few times; counts."""

    model: Model
    failures: int = 0
    count: int = 0
    error: type[Exception] = OSError

    def __call__(self, source: object, _: object = None) -> None:
        self.count += 1
        time.sleep(1)  # so that the others come meanwhile
        if self.count <= self.failures:
            if self.error is OSError:
                raise OSError(5, "it cannot be read", str(source))
            raise CorruptCheckpointError(str(source), "a header", f"nothing, attempt {self.count}")


def files_of(loads: Loads) -> FilesOf:
    return FilesOf(loads.model, lambda: copied(loads.model), loads)


@pytest.fixture
def fresh(monkeypatch, engine_of):
    """No engine was started in this process. ``fresh(files)``: what starts one, and those that were."""

    def fresh(files: ModelFiles | None = None) -> list[Engine]:
        made: list[Engine] = []

        def make(settings: Settings, **_: object) -> Engine:
            made.append(engine_of(ladders=SMALL, max_waiting=settings.max_waiting))
            if files is not None:
                made[-1]._loader._files = files
            return made[-1]

        monkeypatch.setattr(process, "_engine", None)
        monkeypatch.setattr(process, "_settings", Settings())
        monkeypatch.setattr(process, "Engine", make)
        return made

    return fresh


def engine_threads():
    return {thread for thread in threading.enumerate() if thread.name == "gemma-jax-engine"}


def test_sixty_four_threads_start_one_engine_and_load_the_weights_once(fresh, tiny_model, tmp_path):
    others = engine_threads()  # of an engine that another test has left to the end of the process
    loads = Loads(tiny_model)
    made = fresh(files_of(loads))
    served = in_threads(64, lambda _: process.engine().load(tmp_path))
    assert len(made) == 1
    assert loads.count == 1
    assert len({id(each) for each in served}) == 1
    assert len(engine_threads() - others) == 1
    assert_works(process.engine(), served[0])


@pytest.mark.long
@pytest.mark.parametrize("error", [OSError, CorruptCheckpointError])
def test_a_load_that_fails_is_told_to_all_who_wait_and_tried_again_by_the_next(fresh, tiny_model, tmp_path, error):
    loads = Loads(tiny_model, failures=3, error=error)
    fresh(files_of(loads))
    for attempt in range(1, 4):
        errors = in_threads(64, lambda _: process.engine().load(tmp_path))
        assert loads.count == attempt
        assert {type(each) for each in errors} == {error}
        assert len({str(each) for each in errors}) == 1
        assert len({id(each) for each in errors}) == 64, "each raises an object of its own"
        for each in errors:
            shown = "".join(traceback.format_exception(each))
            assert shown.count("in __call__") == 1
            assert shown.count("in run") == 1, "nobody else's frames"
    served = process.engine().load(tmp_path)
    assert loads.count == 4
    assert_works(process.engine(), served)


def test_who_waits_for_a_load_that_was_interrupted_loads_it_himself(fresh, tiny_model, tmp_path):
    began = threading.Event()

    class Interrupted(Loads):
        def __call__(self, source: object, _: object = None) -> None:
            began.set()
            if self.count == 0:
                self.count += 1
                time.sleep(0.2)
                raise KeyboardInterrupt
            super().__call__(source)

    loads = Interrupted(tiny_model)
    fresh(files_of(loads))
    caught = []

    def first() -> None:
        try:
            process.engine().load(tmp_path)
        except KeyboardInterrupt as error:
            caught.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert began.wait()
    served = in_threads(8, lambda _: process.engine().load(tmp_path))
    thread.join()
    assert len(caught) == 1
    assert loads.count == 2
    assert len({id(each) for each in served}) == 1
    assert_works(process.engine(), served[0])


def test_a_model_that_was_loaded_for_an_engine_that_closed_is_freed(fresh, tiny_model, tmp_path):
    mortal = copied(tiny_model)

    def read() -> Model:
        process.engine().close()
        return mortal

    fresh(FilesOf(tiny_model, read))
    with pytest.raises(ClosedError):
        process.engine().load(tmp_path)
    assert mortal.closed
    process.engine()._loader._files = FilesOf(tiny_model, lambda: copied(tiny_model))
    assert_works(process.engine(), process.engine().load(tmp_path))


def test_one_folder_is_one_model_however_it_is_written(fresh, tiny_model, tmp_path, monkeypatch):
    loads = Loads(tiny_model)
    fresh(files_of(loads))
    (tmp_path / "m").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    engine = process.engine()
    assert len({id(engine.load(source)) for source in ("m", "./m", "~/m", Path("m"), tmp_path / "m")}) == 1
    assert loads.count == 1


def test_an_engine_that_was_closed_is_followed_by_another(fresh, tiny_model):
    made = fresh()
    first = process.engine()
    served = first.serve(tiny_model)
    assert first.close(10)
    second = process.engine()
    assert second is not first
    assert len(made) == 2
    with pytest.raises(InputError, match="is not served by this engine"):
        second.submit(served, [10])
    assert_works(second, second.serve(tiny_model))


def test_settings_are_taken_before_the_start_and_the_harmless_ones_after_it(fresh, tiny_model):
    fresh()
    assert process.configure(max_waiting=7, kv_bytes=10**6).max_waiting == 7
    engine = process.engine()
    engine._settings.now = process.configure()
    process.configure(max_waiting=9)
    assert engine.settings.max_waiting == 9
    with pytest.raises(InputError, match=r"loop_steps cannot be changed while the engine is running.*close\(\)"):
        process.configure(max_waiting=10, loop_steps=3)
    assert process.configure().max_waiting == engine.settings.max_waiting == 9, "nothing of it was taken"
    with pytest.raises(InputError, match="no setting is called max_wating"):
        process.configure(max_wating=3)
    assert_works(engine, engine.serve(tiny_model))
    engine.close(10)
    assert process.configure(loop_steps=3).loop_steps == 3


def test_engines_are_not_started_any_more_before_the_last_one_ends(fresh, monkeypatch):
    """Else a thread could ask for another one in between."""
    registered = []
    stand_in = SimpleNamespace(register=registered.append, unregister=lambda _: None)
    for module in (process, owner):
        monkeypatch.setattr(module, "atexit", stand_in)
    made = fresh()
    process.engine()
    assert registered == [made[0]._owner._end_with_process, process._end_with_process], "the last one runs first"


def test_no_engine_is_started_while_the_process_ends(fresh, monkeypatch):
    made = fresh()
    monkeypatch.setattr(process, "_exiting", False)
    monkeypatch.setattr(stopping, "_works", stopping._Works())  # the other tests go on
    process._end_with_process()
    with pytest.raises(ClosedError, match="ending"):
        process.engine()
    assert not made


# In processes of their own.


@pytest.fixture(scope="module")
def environment(tiny_folder, tmp_path_factory) -> dict[str, str]:
    """That of the children: what one has compiled the next one finds."""
    return {
        **os.environ,
        "TINY": str(tiny_folder),
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",  # XLA's own remarks on a cached program
    }


FORKS = '''
    import warnings
    served = started()
    generation = engine().submit(served, [10, 11], LONG)
    pieces = iter(generation)
    next(pieces)
    other = engine().submit(served, [10, 12], LONG)

    def ask(what):
        """Its answer, from a process that is forked now."""
        came, goes = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JAX warns of what is tried here
            child = os.fork()
        if not child:
            try:
                what()
                answer = "nothing was raised"
            except BaseException as error:
                answer = type(error).__name__ + ": " + str(error)
            os.write(goes, answer.encode())
            os._exit(0)
        os.close(goes)
        answer = b""
        import select
        if select.select([came], [], [], 60)[0]:
            answer = os.read(came, 10000)
        else:
            os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(came)
        say(f"{what.__name__}: {answer.decode() or 'it hangs'}")

    def start(): engine()
    def submit(known=engine()): known.submit(served, [10], LONG)
    def load_(known=engine()): known.load(os.environ["TINY"])
    def warm(known=engine()): known.warmup(served)
    def read(): other.result()
    def read_on(): next(pieces)
    def wait():
        import asyncio
        asyncio.run(other.aresult())
    for what in (start, submit, load_, warm, read, read_on, wait):
        ask(what)

    # Threads that hold the engine's locks at the moment of the fork make no difference.
    import sys
    sys.setswitchinterval(1e-6)
    stop = threading.Event()
    def busy():
        while not stop.is_set():
            engine().report()
            with contextlib.suppress(BusyError):
                engine().submit(served, [10], Sampling(max_tokens=1)).cancel()
    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads: thread.start()
    for _ in range(3):
        ask(start)
        ask(submit)
        ask(read)
    stop.set()
    for thread in threads: thread.join()

    def leave(): sys.exit(0)
    ask(leave)
    say(f"parent: {len(list(pieces)) + 1} {len(other.result().ids)}")
'''


@pytest.mark.long
def test_a_forked_process_is_told_at_once(environment, tmp_path):
    ended = run(FORKS, environment, tmp_path)
    assert (ended.code, ended.errors) == (0, "")
    *told, left, parent = ended.words
    assert len(told) == 7 + 9
    for word in told:
        assert ": ForkedError: " in word, word
        assert "spawn" in word, word
    assert left == "leave: SystemExit: 0"
    assert parent == "parent: 100 100", "and the parent goes on"


SPAWN = """
    import multiprocessing

    def child(folder, sink):
        os.environ["TINY"] = folder
        served = started()
        sink.put(engine().submit(served, [10, 11], Sampling(max_tokens=3, ignore_eos=True)).result().ids)

    if __name__ == "__main__":
        served = started()
        wanted = engine().submit(served, [10, 11], Sampling(max_tokens=3, ignore_eos=True)).result().ids
        context = multiprocessing.get_context("spawn")
        sink = context.Queue()
        process = context.Process(target=child, args=(os.environ["TINY"], sink))
        process.start()
        say("same" if sink.get(timeout=100) == wanted else "other")
        process.join()
        say(str(process.exitcode))
"""


@pytest.mark.long
def test_a_spawned_process_has_an_engine_of_its_own(environment, tmp_path):
    ended = run(SPAWN, environment, tmp_path)
    assert (ended.code, ended.words, ended.errors) == (0, ["same", "0"], ""), ended.errors


GENERATING = """
    DeviceAccess.run = slowly
    served = started()
    unread = engine().submit(served, [10, 11], LONG)
    generation = engine().submit(served, [10, 12], LONG)
    time.sleep(0.3)
"""
COMPILING = """
    import jax, jax.numpy as jnp
    served = started()
    unread = engine().submit(served, [10, 11], LONG)

    def long(x):
        for index in range(600):
            x = jnp.sin(x @ x) + jnp.cumsum(x, axis=0) * jnp.float32(index)
        return x

    jax.config.update("jax_disable_most_optimizations", False)
    jax.config.update("jax_enable_compilation_cache", False)
    lowered = jax.jit(long).lower(jnp.ones((64, 64)))
    begun = threading.Event()
    def compile_it():
        say("compiling")
        begun.set()
        lowered.compile()
        say("compiled")
    threading.Thread(target=lambda: engine()._owner.call(compile_it), daemon=True).start()
    begun.wait()
    time.sleep(0.5)
"""
RETURN = "say('leaving')"
EXIT = "say('leaving'); sys.exit(3)"
RAISE = "say('leaving'); raise ValueError('by the script')"
READERS = """
    def read(generation):
        try:
            generation.result()
        except Exception as error:
            assert type(error).__name__ == "ClosedError", error
    for index in range(3):
        made = engine().submit(served, [10, 13 + index], LONG)
        threading.Thread(target=read, args=(made,), daemon=True).start()
"""
WAIT = """
    say('waiting')
    generation.result()
"""
ASYNC = """
    import asyncio
    async def main():
        reading = [asyncio.create_task(engine().submit(served, [20, index], LONG).aresult()) for index in range(3)]
        await asyncio.sleep(0.3)
        say('waiting')
        await asyncio.gather(*reading)
    asyncio.run(main())
"""
ABANDONED = """
    pieces = iter(generation)
    next(pieces)
    sys.modules["kept"] = [pieces, unread]
    say('leaving')
"""
CLOSED = """
    engine().close(10)
    say('leaving')
"""


@dataclass
class Way:
    """A way to end."""

    script: str
    code: int = 0
    interrupt: bool = False
    traceback: str = ""  # the last line of the only one


def dedented(*parts: str) -> str:
    return "\n".join(textwrap.dedent(part) for part in parts)


WAYS = {
    "generating": Way(dedented(GENERATING, ABANDONED)),
    "exit with a status": Way(dedented(GENERATING, READERS, EXIT), code=3),
    "an exception": Way(dedented(GENERATING, RAISE), code=1, traceback="ValueError: by the script"),
    "interrupted": Way(dedented(GENERATING, WAIT), code=-signal.SIGINT, interrupt=True, traceback="KeyboardInterrupt"),
    "compiling": Way(dedented(COMPILING, RETURN)),
    "compiling, exit with a status": Way(dedented(COMPILING, EXIT), code=3),
    "compiling, an exception": Way(dedented(COMPILING, RAISE), code=1, traceback="ValueError: by the script"),
    "compiling, interrupted": Way(
        dedented(COMPILING, "generation = unread", WAIT),
        code=-signal.SIGINT,
        interrupt=True,
        traceback="KeyboardInterrupt",
    ),
    "event loop, interrupted": Way(
        dedented(GENERATING, ASYNC), code=-signal.SIGINT, interrupt=True, traceback="KeyboardInterrupt"
    ),
    "closed": Way(dedented(GENERATING, CLOSED)),
}
QUICK = ["exit with a status", "interrupted", "compiling, exit with a status"]


def check(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    way = WAYS[name]
    ended = run(way.script, environment, tmp_path, "waiting" if way.interrupt else "")
    assert ended.code == way.code, f"{name}: {ended}"
    assert ended.words[-1] in {"leaving", "waiting", "compiled"}, f"{name}: {ended}"
    if way.traceback:
        # One by the interpreter itself; that of a KeyboardInterrupt in an event loop comes of a CancelledError.
        assert ended.errors.strip().endswith(way.traceback), f"{name}: {ended}"
        assert "Exception ignored" not in ended.errors, f"{name}: {ended}"
        assert "Exception in thread" not in ended.errors, f"{name}: {ended}"
    else:
        assert ended.errors == "", f"{name}: {ended}"


@pytest.mark.long
def test_a_process_ends_cleanly_whatever_its_engine_is_doing(environment, tmp_path_factory):
    places = {name: tmp_path_factory.mktemp("exit") for name in QUICK}
    check(QUICK[0], environment, places[QUICK[0]])  # which compiles for the others
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: check(name, environment, places[name]), QUICK[1:]))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_process_ends_cleanly_in_each_of_twenty_runs(environment, tmp_path_factory):
    names = [*WAYS, *WAYS]
    places = [tmp_path_factory.mktemp("exit") for _ in names]
    check("closed", environment, tmp_path_factory.mktemp("exit"))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda pair: check(pair[0], environment, pair[1]), zip(names, places, strict=True)))
