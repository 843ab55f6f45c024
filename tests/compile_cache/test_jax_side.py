from __future__ import annotations

import threading
import warnings
from dataclasses import astuple
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import compilation_cache as jax_cache
from jax._src import lib as jax_lib
from jax.experimental.compilation_cache import compilation_cache

from langchain_gemma_jax.compile_cache.jax_side import bypass_store, quiet_loading, take_over
from langchain_gemma_jax.compile_cache.store import Store

FUNCTIONS = ("get_file_cache", "get_executable_and_time", "put_executable_and_time")


class Jax:
    """JAX in this process, pointed at a store of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.ours, self.theirs = folder / "ours", folder / "theirs"
        self.store: Store | None = Store(self.ours / "cpu", root=self.ours)
        self.events: list[str] = []

    def listen(self, event: str, **_: object) -> None:
        self.events.append(event.rpartition("/")[2])

    def compile_anew(self) -> str:
        """Compile a function as a new process would. What JAX says of its cache: a hit, a miss, or nothing."""
        self.events.clear()
        jax.clear_caches()
        assert float(jax.jit(_weigh)(np.arange(5.0, dtype=np.float32))) == 30.0
        return " ".join(event for event in self.events if event in {"cache_hits", "cache_misses"})

    def put(self, payload: bytes) -> None:
        """Replace the one program that is kept."""
        (kept,) = self.store.entries()
        self.store.put(kept.name, payload, label=kept.label, seconds=1.0)


def _weigh(x: jax.Array) -> jax.Array:
    return jnp.sum(x * x)


def name_folder(folder: Path | None) -> None:
    jax.config.update("jax_compilation_cache_dir", None if folder is None else str(folder))


@pytest.fixture
def setting(monkeypatch):
    """Changes JAX's settings for as long as the test runs."""
    before: dict[str, object] = {}

    def change(name: str, value: object) -> None:
        before.setdefault(name, getattr(jax.config, name))
        jax.config.update(name, value)

    yield change
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.fixture
def pointed(tmp_path, monkeypatch, setting) -> Jax:
    for name in FUNCTIONS:
        monkeypatch.setattr(jax_cache, name, getattr(jax_cache, name))  # what is replaced now comes back afterwards
    mine = Jax(tmp_path)
    take_over(lambda path: path == str(mine.ours), lambda: mine.store)
    setting("jax_compilation_cache_dir", str(mine.ours))
    setting("jax_persistent_cache_min_compile_time_secs", 0.0)
    setting("jax_persistent_cache_enable_xla_caches", "none")  # else the folder's name is part of the key
    compilation_cache.reset_cache()
    jax.monitoring.register_event_listener(mine.listen)
    yield mine
    jax.monitoring.unregister_event_listener(mine.listen)
    compilation_cache.reset_cache()


@pytest.fixture
def levels(monkeypatch) -> list[int]:
    """The levels from which on the compiled half was told to write messages."""
    told: list[int] = []
    monkeypatch.setattr(jax_lib.utils, "absl_set_min_log_level", told.append)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    return told


def test_the_second_time_it_comes_from_the_store(pointed):
    assert pointed.compile_anew() == "cache_misses"
    assert pointed.compile_anew() == "cache_hits"
    assert astuple(pointed.store.counts)[:4] == (1, 1, 0, 1)
    (kept,) = pointed.store.entries()
    assert kept.label == "jit__weigh"
    assert kept.name.startswith("jax/jit__weigh-")


def test_what_the_compile_took_is_kept(pointed, monkeypatch):
    put = jax_cache.put_executable_and_time
    monkeypatch.setattr(jax_cache, "put_executable_and_time", lambda *arguments: put(*arguments[:-1], 7))
    pointed.compile_anew()
    pointed.compile_anew()
    assert pointed.store.counts.seconds_saved == 7.0


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]]
)
def test_what_is_damaged_is_compiled_anew_and_healed(pointed, damage):
    pointed.compile_anew()
    (file,) = pointed.store.folder.glob("*.entry")
    file.write_bytes(damage(file.read_bytes()))
    assert pointed.compile_anew() == "cache_misses"
    assert pointed.compile_anew() == "cache_hits"


def test_what_cannot_be_loaded_is_compiled_anew_and_healed(pointed):
    pointed.compile_anew()
    pointed.put(b"sealed, and no program")
    with warnings.catch_warnings(record=True) as said:
        assert pointed.compile_anew() == "cache_misses"
    assert said == []
    assert pointed.compile_anew() == "cache_hits"


def test_what_cannot_be_loaded_is_gone_even_where_nothing_takes_its_place(pointed, setting):
    pointed.compile_anew()
    pointed.put(b"sealed, and no program")
    setting("jax_persistent_cache_min_compile_time_secs", 60.0)
    assert pointed.compile_anew() == ""
    assert pointed.store.entries() == []


def test_who_asks_jax_for_errors_gets_them(pointed, setting):
    setting("jax_raise_persistent_cache_errors", True)
    pointed.compile_anew()
    pointed.put(b"sealed, and no program")
    with pytest.raises(Exception, match=r"(?i)zstd|decompress|header|frame"):
        pointed.compile_anew()


def test_a_way_to_the_store_that_raises_costs_a_compile(pointed, monkeypatch):
    pointed.compile_anew()
    monkeypatch.setattr(Store, "get", lambda *_: 1 / 0)
    monkeypatch.setattr(Store, "discard", lambda *_: 1 / 0)
    assert pointed.compile_anew() == "cache_misses"


def test_a_program_that_jax_cannot_give_away(pointed, monkeypatch, said):
    monkeypatch.setattr(Store, "put", lambda *_, **__: 1 / 0)
    assert pointed.compile_anew() == "cache_misses"
    assert [message[:71] for message in said] == [
        "Compiled programs are not kept: JAX cannot give jit__weigh away (ZeroDi"
    ]
    said.clear()


def test_no_store_is_no_cache(pointed):
    pointed.store = None
    assert [pointed.compile_anew() for _ in range(2)] == ["cache_misses"] * 2


def test_aside_the_store_is_not_used_by_this_thread(pointed):
    pointed.compile_anew()
    seen = []
    with bypass_store():
        with bypass_store():
            assert pointed.compile_anew() == ""
        assert pointed.compile_anew() == ""
        thread = threading.Thread(target=lambda: seen.append(pointed.compile_anew()))
        thread.start()
        thread.join()
    assert seen == ["cache_hits"]
    assert astuple(pointed.store.counts)[:4] == (1, 1, 0, 1)
    assert pointed.compile_anew() == "cache_hits"


def test_the_folder_that_the_user_names_later_counts(pointed):
    pointed.compile_anew()
    name_folder(pointed.theirs)
    assert [pointed.compile_anew() for _ in range(2)] == ["cache_misses", "cache_hits"]
    assert [file.name.partition("-")[0] for file in pointed.theirs.glob("*-cache")] == ["jit__weigh"]
    assert astuple(pointed.store.counts)[:4] == (0, 1, 0, 1)


def test_the_first_folder_that_the_user_names_stays_as_in_jax(pointed, tmp_path):
    pointed.compile_anew()
    name_folder(pointed.theirs)
    pointed.compile_anew()
    name_folder(tmp_path / "another")
    assert pointed.compile_anew() == "cache_hits"
    name_folder(None)
    assert pointed.compile_anew() == "cache_hits"
    assert not (tmp_path / "another").exists()


def test_no_folder_is_none(pointed):
    pointed.compile_anew()
    name_folder(None)
    assert [pointed.compile_anew() for _ in range(2)] == ["cache_misses"] * 2
    assert astuple(pointed.store.counts)[:4] == (0, 1, 0, 1)


def test_a_folder_that_the_user_named_before_the_first_compile(pointed):
    name_folder(pointed.theirs)
    pointed.compile_anew()
    assert len(list(pointed.theirs.glob("*-cache"))) == 1
    assert not pointed.ours.exists()
    assert type(jax_cache._cache).__module__.startswith("jax.")


def test_jax_can_compare_what_is_kept_with_a_new_compile(pointed, setting):
    pointed.compile_anew()
    (kept,) = pointed.store.entries()
    setting("jax_compilation_cache_check_contents", True)
    checking, _ = jax_cache.get_file_cache(str(pointed.ours))
    assert checking.get(kept.name.removeprefix("jax/")) is None  # so that JAX compiles it
    with pytest.raises(RuntimeError, match="does not match"):
        checking.put(kept.name.removeprefix("jax/"), jax_cache.compress_executable(b"0000something else"))


def test_a_jax_without_such_functions_says_more_and_works_all_the_same(pointed, monkeypatch):
    monkeypatch.undo()
    for name in FUNCTIONS[1:]:
        monkeypatch.delattr(jax_cache, name)
    monkeypatch.setattr(jax_cache, "get_file_cache", jax_cache.get_file_cache)
    take_over(lambda _: True, lambda: pointed.store)
    assert FUNCTIONS[1] not in vars(jax_cache)
    made, _ = jax_cache.get_file_cache(str(pointed.ours))
    made.put("jit_f-1", b"program")
    assert made.get("jit_f-1") == b"program"


def test_a_jax_that_makes_its_cache_otherwise_is_not_touched(monkeypatch):
    monkeypatch.delattr(jax_cache, "get_file_cache")
    before = dict(vars(jax_cache))
    with pytest.raises(AttributeError, match="get_file_cache"):
        take_over(lambda _: True, lambda: None)
    assert vars(jax_cache) == before


def test_loading_is_quiet_until_the_last_thread_is_done(levels):
    inside, done = threading.Event(), threading.Event()

    def load() -> None:
        with quiet_loading():
            inside.set()
            done.wait(300)

    thread = threading.Thread(target=load)
    thread.start()
    assert inside.wait()
    with quiet_loading():
        pass
    assert levels == [3]
    done.set()
    thread.join()
    assert levels == [3, 2]


def test_the_level_is_restored_when_loading_fails(levels):
    with pytest.raises(ZeroDivisionError), quiet_loading():
        raise ZeroDivisionError
    assert levels == [3, 2]


@pytest.mark.parametrize(
    ("level", "expected"), [("DEBUG", 0), ("WARNING", 1), ("ERROR", 2), ("CRITICAL", 3), (None, 2)]
)
def test_the_level_that_the_user_asked_jax_for_is_restored(levels, setting, level, expected):
    setting("jax_logging_level", level)
    levels.clear()
    with quiet_loading():
        pass
    assert levels == [3, expected]


def test_jax_loads_quietly_and_compiles_as_ever(pointed, levels):
    pointed.compile_anew()
    assert levels == [3, 2]  # it looked, and found nothing
    pointed.put(b"sealed, and no program")
    pointed.compile_anew()
    assert levels == [3, 2] * 2
    name_folder(pointed.theirs)
    pointed.compile_anew()
    assert levels == [3, 2] * 2  # in their own cache JAX is as they know it


def test_without_a_way_to_set_the_level_loading_works(monkeypatch):
    monkeypatch.delattr(jax_lib.utils, "absl_set_min_log_level")
    with quiet_loading():
        pass


def test_nothing_is_said_of_what_is_loaded(pointed, capfd):
    pointed.compile_anew()
    pointed.compile_anew()
    assert capfd.readouterr() == ("", "")
