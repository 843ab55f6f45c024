"""Logs and other tenants get an error's name and place, and none of its text."""

from __future__ import annotations

import logging
import traceback
from types import SimpleNamespace

import jax
import pytest

from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.pages import Paging
from langchain_gemma_jax.engine.conversations.host_store import HostStore
from langchain_gemma_jax.engine.executables import library as library_module
from langchain_gemma_jax.engine.host.error_names import MOST, named
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.steps import postprocess
from langchain_gemma_jax.errors import ClosedError, DeviceFailedError
from tests.engine.faults_support import SMALL, assert_works, greedy, in_threads, outcome, slowed
from tests.waiting import until

SECRET = "canary-7f3a91"
SCOPES = ("a", "b", "c")


class TellingError(Exception):
    """An error whose text holds a tenant's words, as anything may that comes up on the engine's thread."""

    def __init__(self) -> None:
        super().__init__(f"cannot go on behind {SECRET}")


class TellingEnd(BaseException):
    def __init__(self) -> None:
        super().__init__(f"ended behind {SECRET}")


def tell(*_: object, **__: object) -> None:
    raise TellingError


def raised():
    with pytest.raises(TellingError) as found:
        tell()
    return found.value


def all_run(engine, count):
    until(lambda: engine.report().running == count)


def test_an_error_is_named_without_its_text():
    assert named(raised()).startswith("TellingError in test_error_names.py, line ")
    assert named(TellingError()) == "TellingError"
    full = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: " + "8" * 1000)
    assert named(full).startswith("JaxRuntimeError: RESOURCE_EXHAUSTED: 888")
    assert len(named(full)) < MOST + 30


@pytest.fixture
def heard(caplog, capfd, recwarn):
    """Everything that is logged at any level, warned of, or written, by Python or below it."""
    caplog.set_level(logging.DEBUG)

    def heard() -> str:
        out, err = capfd.readouterr()
        return "\n".join([caplog.text, out, err, *(str(warning.message) for warning in recwarn)])

    return heard


@pytest.mark.parametrize("scopes", [SCOPES, ("a",)])
def test_a_mistake_on_the_engines_thread_tells_no_tenant_of_another(engine_of, tiny_model, monkeypatch, heard, scopes):
    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    engine.warmup(served)
    with monkeypatch.context() as patch, slowed(0.02):
        waiting = [engine.submit(served, [10, number], greedy(60), scope=scope) for number, scope in enumerate(scopes)]
        all_run(engine, len(scopes))
        patch.setattr(postprocess, "accept", tell)
        errors = in_threads(len(scopes), lambda index: outcome(waiting[index]))
    assert {type(error) for error in errors} == {DeviceFailedError}
    told = ["".join(traceback.format_exception(error)) for error in errors]
    assert all("TellingError" in text for text in told)
    assert [SECRET in text for text in told] == [len(scopes) == 1] * len(scopes), "it is told to one tenant alone"
    assert SECRET not in heard()
    assert_works(engine, served)


def test_the_end_of_the_engines_thread_is_said_without_its_text(engine_of, tiny_model, monkeypatch, heard):
    def end(*_: object, **__: object) -> None:
        raise TellingEnd

    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    engine.warmup(served)
    with slowed(0.02):
        waiting = [engine.submit(served, [10, number], greedy(60), scope=scope) for number, scope in enumerate(SCOPES)]
        all_run(engine, len(SCOPES))
        monkeypatch.setattr(postprocess, "accept", end)
        errors = in_threads(len(SCOPES), lambda index: outcome(waiting[index]))
    engine._owner.thread.wait()
    assert {type(error) for error in errors} == {ClosedError}
    assert SECRET not in "".join(text for error in errors for text in traceback.format_exception(error))
    found = heard()
    assert SECRET not in found
    assert "the engine's thread was ended by TellingEnd in test_error_names.py, line" in found


def test_what_cannot_be_kept_or_loaded_is_said_without_its_text(engine_of, tiny_model, tmp_path, monkeypatch, heard):
    """Conversations that do not go to the host, programs that the disk does not take or give."""
    refusing = SimpleNamespace(put=tell, parts=1, usable=True, budget=2**30, worth_keeping=lambda *_: True)
    shelf = HostStore(None, refusing, refusing, Metrics(), parts=1, usable=True)
    index = SimpleNamespace(bytes_of=len, wanted=lambda _: set())
    held = SimpleNamespace(index=index, paging=Paging(64, None), read=tell)
    assert not shelf.keep(SimpleNamespace(keys=token_keys([1, 2]), whole=[1], local={}, scope="a"), held)
    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    engine.submit(served, [10, 11], greedy(2)).result()
    (runner,) = engine._owner.models.runners.values()
    monkeypatch.setattr(library_module, "_dump", tell)
    monkeypatch.setattr(library_module, "_load", tell)
    library = runner.library
    assert library._store is None
    with monkeypatch.context() as patch:
        patch.setattr(library, "_store", Store(tmp_path / "xla"))
        patch.setattr(library, "_family", "f")
        made = next(iter(library._made.values())).result()
        library._store.put("x", b"code", label="step", seconds=1)
        library._keep(
            "y", ("step", 1, 32), library_module.ReadyProgram(made.call, 1.0, loaded=False, whole=True, cost=1.0)
        )
        assert library._fetch("x", ("step", 1, 32)) is None
    found = heard()
    assert "could not be kept on the host: TellingError in test_error_names.py" in found
    assert "cannot be kept on this platform: TellingError in test_error_names.py" in found
    assert "could not be loaded and is made again: step: TellingError in test_error_names.py" in found
    assert SECRET not in found
