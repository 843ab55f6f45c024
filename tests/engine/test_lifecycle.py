"""An engine among signals, forks and hooks: calls work or are refused with a reason, and never wait for themselves."""

from __future__ import annotations

import logging
import os
import textwrap
import threading
import warnings
from pathlib import Path

import pytest

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.base.guards import Guards, GuardWarning
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.errors import ReentrantCallError
from langchain_gemma_jax.reentry import Inside
from tests.chat.tiny import SAMPLED, tiny_folder
from tests.engine.child import run
from tests.engine.faults_support import SMALL, assert_works, greedy, slowed


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """That of the children: what one has compiled the next one finds."""
    return {
        **os.environ,
        "TINY": str(tiny_folder(tmp_path_factory.mktemp("models") / "tiny", "gemma4", **SAMPLED)),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",  # XLA's own remarks on a cached program
    }


# Forks

ASK = '''
    import select, warnings

    def ask(what):
        """What comes of it in a process that is forked now."""
        came, goes = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JAX, and Python, warn of what is tried here
            child = os.fork()
        if not child:
            try:
                answer = str(what() or "nothing was raised")
            except BaseException as error:
                answer = type(error).__name__ + ": " + str(error)
            os.write(goes, answer.encode())
            os._exit(0)
        os.close(goes)
        answer = os.read(came, 10000).decode() if select.select([came], [], [], 40)[0] else "it hangs"
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(came)
        say(f"{what.__name__}: {answer}")

    folder = os.environ["TINY"]
    def start(): engine()
    def start_by_the_door():
        import langchain_gemma_jax
        langchain_gemma_jax.engine()
    def load_it(): load(folder)
    def from_a_tree():
        from langchain_gemma_jax import from_gemma
        from_gemma(None, {})
    def chat(): return ChatGemmaJax(model=folder).invoke("A")
    def stream(): return list(ChatGemmaJax(model=folder).stream("A"))
    def batch(): return ChatGemmaJax(model=folder).batch(["A", "B"])
    def async_chat(): return asyncio.run(ChatGemmaJax(model=folder).ainvoke("A"))
    def count(): return ChatGemmaJax(model=folder).get_num_tokens("A")
    def route(): return ChatGemmaJax(model="auto", route={"light": "sprout-s", "heavy": folder}).invoke("A")
    def settings(): return configure().max_waiting
    ALL = (start, start_by_the_door, load_it, from_a_tree, chat, stream, batch, async_chat, count, route)

    import asyncio
    from langchain_gemma_jax import ChatGemmaJax
'''

USES = {
    "a model was loaded": "model = load(folder)",
    "JAX was used by somebody else": "import jax; jax.numpy.ones(3) + 1",
    "an engine was started": "engine()",
    "a model was served": "served = started(); engine().submit(served, [10, 11], Sampling(max_tokens=3)).result()",
}


QUICK = ("JAX was used by somebody else", "a model was loaded")


@pytest.mark.long
@pytest.mark.parametrize(
    "uses",
    [pytest.param(QUICK, id="one after the other"), *(pytest.param((use,), marks=pytest.mark.slow) for use in USES)],
)
def test_a_process_that_was_forked_after_any_use_is_told_at_once(uses, environment, tmp_path):
    asking = "\nfor what in ALL: ask(what)\nask(settings)\nsay('the parent goes on')\n"
    script = textwrap.dedent(ASK) + "".join(USES[use] + asking for use in uses)
    ended = run(script, environment, tmp_path)
    assert ended.code == 0, ended
    assert len(ended.words) == 12 * len(uses), ended
    for number in range(len(uses)):
        *told, settings, parent = ended.words[12 * number :][:12]
        for word in told:
            assert ": ForkedError: " in word, word
            assert "spawn" in word, word
        assert (settings, parent) == ("settings: 256", "the parent goes on")


HANDLES = """
    served = started()
    done = engine().submit(served, [10, 11], Sampling(max_tokens=3))
    done.result()
    running = engine().submit(served, [10, 11], LONG)
    known = engine()

    def report(): known.report()
    def models(): known.models()
    def status(): known.status(folder)
    def hold():
        with known.hold(served): pass
    def pin(): known.pin(served)
    def keep_alive(): known.keep_alive(served, 5)
    def evict(): known.evict(served)
    def unload(): known.unload(served)
    def submit(): known.submit(served, [10])
    def warm(): known.warmup(served)
    def prepare(): known.prepare(served)
    def read(): running.result()
    def read_on(): next(iter(running))
    def wait(): asyncio.run(running.aresult())
    for what in (report, models, status, hold, pin, keep_alive, evict, unload, submit, warm, prepare): ask(what)
    for what in (read, read_on, wait): ask(what)
    def close(): return known.close()
    def cancel(): return running.cancel() or "cancelled"
    def read_again(): return len(done.result().ids)
    for what in (close, cancel, read_again):
        ask(what)
    say(f"parent: {len(running.result().ids)}")
"""


@pytest.mark.long
def test_whatever_a_forked_process_still_holds_tells_it_too(environment, tmp_path):
    ended = run(textwrap.dedent(ASK) + textwrap.dedent(HANDLES), environment, tmp_path)
    *told, close, cancel, again, parent = ended.words
    assert len(told) == 14, ended
    assert all(": ForkedError: " in word for word in told), told
    assert (close, cancel, again) == ("close: True", "cancel: cancelled", "read_again: 3")
    assert parent == "parent: 100", "and the parent goes on"


@pytest.mark.long
def test_a_process_that_was_forked_before_any_use_works(environment, tmp_path):
    script = """
    import jax
    def generate():
        served = started()
        return len(engine().submit(served, [10, 11], Sampling(max_tokens=2, ignore_eos=True)).result().ids)
    def grandchild():
        tokens = generate()
        came, goes = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if not child:
            try:
                generate()
            except BaseException as error:
                os.write(goes, type(error).__name__.encode())
            os._exit(0)
        return os.read(came, 100).decode() + " " + str(tokens)
    ask(grandchild)
    say(generate())
    """
    ended = run(textwrap.dedent(ASK) + textwrap.dedent(script), environment, tmp_path)
    assert ended.words == ["grandchild: ForkedError 2", "2"], ended


LATE = """
    import jax, os, warnings
    warnings.simplefilter("ignore")
    jax.numpy.ones(3) + 1
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    from langchain_gemma_jax import ForkedError, load_model
    try:
        load_model(os.environ["TINY"])
        found = "it works"
    except ForkedError:
        found = "it is told"
    print(found, flush=True)
    os._exit(0)
"""


@pytest.mark.long
def test_a_process_that_was_forked_before_the_package_was_imported_is_told_too(environment, tmp_path):
    ended = run(LATE, environment, tmp_path, prelude="")
    assert (ended.code, ended.words) == (0, ["it is told", "it works"]), "the child, and the one that forked it"


# Signals

AMONG_SIGNALS = """
    import random
    from langchain_gemma_jax import ChatGemmaJax, ReentrantCallError
    configure(ladders=Ladders(chunks=(16, 256), capacities=(2048,), rows=(1,)), drafts=False)
    folder, numbers = os.environ["TINY"], random.Random(int(os.environ["SEED"]))
    llm = ChatGemmaJax(model=folder, max_tokens=2, temperature=0)
    served, counts, inside = engine().load(folder), {"works": 0, "refused": 0}, False
    wanted = llm.invoke("A").text, llm.invoke("B").text

    def ask():
        assert llm.invoke("B").text == wanted[1]
    calls = [
        engine, configure, ask, lambda: configure(keep_alive=numbers.randint(50, 90)), lambda: engine().report(),
        lambda: engine().models(), lambda: engine().load(folder),
        lambda: engine().keep_alive(engine().load(folder), 60),
    ]
    def handle(*_):
        global inside
        if inside:
            return
        inside = True
        try:
            numbers.choice(calls)()
            counts["works"] += 1
        except ReentrantCallError:
            counts["refused"] += 1
        inside = False
        signal.setitimer(signal.ITIMER_REAL, numbers.uniform(0.00005, 0.005))

    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    for number in range(int(os.environ["ROUNDS"])):
        with contextlib.suppress(ReentrantCallError):  # it can come out of configure: a handler changes settings too
            assert llm.invoke("A").text == wanted[0]
            engine().keep_alive(served, 50)
            configure(max_waiting=50 + number % 3)

    # Engines come and go.
    for number in range(int(os.environ["ROUNDS"])):
        engine().report()
        if number % 10 == 9:
            engine().close()
            served = engine().load(folder)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert llm.invoke("A").text == wanted[0]
    say(f"{counts['works'] > 20} {counts['refused'] <= counts['works']}")
    say(sum(thread.name == "gemma-jax-engine" for thread in threading.enumerate()))
"""


@pytest.mark.long
@pytest.mark.parametrize("seed", [pytest.param(1, id="1"), pytest.param(2, id="2", marks=pytest.mark.slow)])
def test_a_signal_handler_may_call_whatever_it_interrupts(seed, environment, tmp_path):
    rounds = 100 if seed == 1 else 600
    ended = run(AMONG_SIGNALS, environment | {"SEED": str(seed), "ROUNDS": str(rounds)}, tmp_path)
    assert (ended.code, ended.words, ended.errors) == (0, ["True True", "1"], "")


RAISING = """
    import random
    numbers = random.Random(3)
    class Interrupted(BaseException): pass
    armed = False
    def handle(*_):
        if armed:
            raise Interrupted
    served, first = started(), engine()
    signal.signal(signal.SIGALRM, handle)
    count = 0
    for number in range(400):
        signal.setitimer(signal.ITIMER_REAL, numbers.uniform(0.00001, 0.0004), 0.01)  # a finalizer swallows it
        try:
            armed = True
            engine().submit(served, [10], Sampling(max_tokens=1)).cancel()
            while True:
                engine().alive
                engine().report()
        except Interrupted:
            count += 1
        except BusyError:
            pass
        finally:
            armed = False
        if number % 100 == 0:
            assert engine() is first
            while engine().report().waiting:
                time.sleep(0.01)
            assert len(engine().submit(served, [10, 11], Sampling(max_tokens=2, ignore_eos=True)).result().ids) == 2
    signal.setitimer(signal.ITIMER_REAL, 0)
    say(f"{count > 100} {engine() is first}")
    say(sum(thread.name == "gemma-jax-engine" for thread in threading.enumerate()))
"""


@pytest.mark.long
def test_an_engine_lives_on_whatever_is_raised_while_somebody_asks_whether_it_does(environment, tmp_path):
    ended = run(RAISING, environment, tmp_path)
    assert (ended.code, ended.words) == (0, ["True True", "1"]), ended


def test_what_python_says_of_the_thread_is_not_asked(engine_of, tiny_model, monkeypatch):
    def interrupted(_: threading.Thread) -> bool:
        raise KeyboardInterrupt

    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    monkeypatch.setattr(process, "_engine", engine)
    for broken in (interrupted, lambda _: False):
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "is_alive", broken)
            assert engine.alive
            assert process.engine() is engine
    assert_works(engine, served)


def test_a_thread_is_refused_only_while_it_is_inside():
    inside, other = Inside("it tried this"), []
    thread = threading.Thread(target=lambda: other.append(inside.refuse()))

    def twice() -> None:
        with inside.here():
            thread.start()
            thread.join()
            with inside.here():
                raise AssertionError("this one may not")

    with pytest.raises(ReentrantCallError, match="while it tried this"):
        twice()
    assert other == [None], "another thread may"
    assert not inside
    inside.refuse()


# Hooks


class Calling(logging.Handler):
    """A log handler that asks a model."""

    def __init__(self, call) -> None:
        super().__init__()
        self.call, self.found = call, []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.found.append(self.call())
        except Exception as error:
            self.found.append(error)
            raise


@pytest.fixture
def served(engine_of, tiny_model, monkeypatch):
    engine = engine_of(ladders=SMALL)
    monkeypatch.setattr(process, "_engine", engine)
    monkeypatch.setattr(process, "_settings", engine.settings)
    return engine.serve(tiny_model)


@pytest.mark.long
def test_a_log_handler_that_asks_a_model_is_refused_and_stops_nothing(served, capsys):
    engine = process.engine()
    running = engine.submit(served, [10, 12], greedy(2))
    running.result()
    calls = [
        lambda: next(iter([unread])).result(),
        lambda: process.engine().submit(served, [10, 11], greedy(2)).result(),
        lambda: process.engine().load("nowhere"),
        lambda: process.engine().warmup(served),
        lambda: process.engine().evict(served),
        lambda: process.engine().unload(served),
        lambda: process.configure(memory_budget="1GB"),
    ]
    logger = logging.getLogger("langchain_gemma_jax.engine.conversations.kv_store")
    with slowed(0.02):
        unread = engine.submit(served, [10, 13], greedy(60))
        for call in calls:
            for run_there in (engine._owner.call, lambda work: engine._owner.background.submit(work).result()):
                handler = Calling(call)
                logger.addHandler(handler)
                try:
                    run_there(lambda: OwnLog(logger.name).warning("a line"))
                finally:
                    logger.removeHandler(handler)
                assert [type(each) for each in handler.found] == [ReentrantCallError]
        assert len(unread.result().ids) == 60, "nobody else is concerned"
    assert "a thread of the engine itself" in capsys.readouterr().err
    assert_works(engine, served)


def test_what_the_engine_logs_itself_is_such_a_line(served):
    handler = Calling(lambda: process.engine().submit(served, [10, 11], greedy(2)).result())
    logger = logging.getLogger("langchain_gemma_jax")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        prompt = list(range(10, 60))
        done = process.engine().submit(served, prompt, greedy(20)).result()
        process.engine().submit(
            served, prompt[:20], greedy(2)
        ).result()  # what its rings forgot is lost, which is logged
        assert len(done.ids) == 20
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    assert handler.found
    assert {type(each) for each in handler.found} == {ReentrantCallError}
    assert_works(process.engine(), served)


def test_a_hook_for_warnings_that_asks_a_model_is_refused_and_stops_nothing(served, monkeypatch, capsys):
    engine = process.engine()
    found = []

    def show(*_: object, **__: object) -> None:
        found.append(1)
        engine.submit(served, [10, 11], greedy(2)).result()

    guards = Guards(lambda: Settings(guards="warn"))
    with warnings.catch_warnings():
        warnings.simplefilter("always", GuardWarning)
        monkeypatch.setattr(warnings, "showwarning", show)
        engine._owner.call(lambda: guards.trip("recompile", "for this test"))
    assert found
    assert "ReentrantCallError" in capsys.readouterr().err
    assert_works(engine, served)


def test_a_line_is_logged_with_its_own_place(caplog):
    with caplog.at_level(logging.INFO, "somewhere"):
        OwnLog("somewhere").info("number %d", 3)
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == ("somewhere", "number 3")
    assert Path(record.pathname) == Path(__file__)
