"""The effect of importing the package on JAX, in processes of their own, whatever was imported or set before."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import jax
import pytest
from jax._src import compilation_cache as jax_cache

from langchain_gemma_jax.compile_cache import install as installing
from langchain_gemma_jax.compile_cache.install import current_store, move, store_for
from langchain_gemma_jax.compile_cache.platform import platform_folder
from langchain_gemma_jax.compile_cache.store import DEFAULT_CAP
from langchain_gemma_jax.errors import InputError

ROOT = Path(__file__).parents[2]

# Every script begins with this. `compile_anew` compiles as a new process would; it gives what JAX says of its cache.
HELPERS = """
import json, sys

def expect(condition):  # an assertion is nothing with -O
    if not condition:
        raise RuntimeError("not as expected")

def listen():
    global jax, numpy, events
    import jax, numpy
    events = []
    jax.monitoring.register_event_listener(lambda event, **_: events.append(event.rpartition("/")[2]))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

def compile_anew():
    jax.clear_caches()
    events.clear()
    expect(jax.device_get(jax.jit(lambda x: x @ x)(numpy.full(4, 2, numpy.float32))) == 16)
    return " ".join(event for event in events if event in {"cache_hits", "cache_misses"})

def named():
    return jax.config.jax_compilation_cache_dir

"""


class Fresh:
    """Runs scripts in new processes that share a home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "cache" / "xla"
        self.stderr = ""

    def run(
        self, script: str, *flags: str, quiet: bool = True, arguments: Sequence[str] = (), **environment: str
    ) -> object:
        """Return the output of the script, read as JSON."""
        theirs = ("GEMMA_JAX_", "XDG_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
        ours = {"PYTHONPATH": str(ROOT), "HOME": str(self.home), "GEMMA_JAX_CACHE_DIR": str(self.home / "cache")}
        result = subprocess.run(
            [sys.executable, *flags, "-c", HELPERS + dedent(script), *arguments],
            env=inherited | ours | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.stderr = result.stderr
        assert result.returncode == 0, result.stderr
        assert result.stderr == "" or not quiet
        return json.loads(result.stdout)

    @property
    def entries(self) -> list[Path]:
        return sorted(self.root.glob("*/*/*.entry"))


@pytest.fixture
def fresh(tmp_path) -> Fresh:
    return Fresh(tmp_path)


@pytest.mark.long
def test_imported_before_jax_and_after_it_has_compiled(fresh):
    """The story of the cache: a program is kept by one process, and found, doubted, healed and moved by the next."""
    first = fresh.run(
        """
        import importlib, importlib.util
        finders = list(sys.meta_path)
        import langchain_gemma_jax
        expect(importlib.util.find_spec("jax").name == "jax" and "jax" not in sys.modules)
        listen()
        ours = [finder for finder in sys.meta_path if not getattr(finder, "name", "").startswith("langchain.")]
        expect(ours == finders and "exec_module" not in vars(jax.__spec__.loader))
        before = named()
        importlib.reload(jax)
        expect(named() == before and not jax._src.xla_bridge._backends)
        said = [before, jax.config.jax_persistent_cache_enable_xla_caches, compile_anew()]
        jax.config.update("jax_compilation_cache_dir", None)
        langchain_gemma_jax._compile_cache.install()
        expect(named() is None)  # the user said so
        print(json.dumps(said))
        """,
        *("-W", "error"),
    )
    assert first == [str(fresh.root / platform_folder()), "none", "cache_misses"]
    (entry,) = fresh.entries
    assert entry.parent.name == "cpu"
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [fresh.root, *fresh.root.rglob("*")]}
    assert modes == {path: 0o700 if path.is_dir() else 0o600 for path in modes}

    second = fresh.run(
        """
        from dataclasses import astuple
        from pathlib import Path
        listen()
        jax.config.update("jax_compilation_cache_dir", sys.argv[1])  # which JAX holds on to
        said = [compile_anew()]
        jax.config.update("jax_compilation_cache_dir", None)
        import langchain_gemma_jax
        from langchain_gemma_jax.compile_cache.install import current_store, install, move
        root = Path(named()).parent
        install()
        said.append(compile_anew())
        (file,) = root.glob("*/*/*.entry")
        data = bytearray(file.read_bytes())
        data[-100] ^= 4
        file.write_bytes(data)
        said += [compile_anew(), compile_anew()]
        expect(astuple(current_store().counts)[:4] == (2, 1, 1, 1))

        move(root.with_name("elsewhere"))
        said += [compile_anew(), compile_anew()]
        move(None)
        expect(named() is None and current_store() is None)
        expect(jax.config.jax_persistent_cache_enable_xla_caches == "xla_gpu_per_fusion_autotune_cache_dir")
        compile_anew()
        move(root)
        said.append(compile_anew())
        print(json.dumps(said))
        """,
        "-O",
        arguments=[str(fresh.home / "theirs")],
    )
    healed = ["cache_misses", "cache_hits"]
    assert second == ["cache_misses", "cache_hits", *healed, *healed, "cache_hits"]
    assert len(fresh.entries) == len(list(fresh.root.with_name("elsewhere").glob("*/*/*.entry"))) == 1


@pytest.mark.long
def test_a_folder_that_the_user_gave_jax_stays_theirs(fresh):
    theirs = fresh.home / "theirs"
    said = fresh.run(
        """
        import langchain_gemma_jax
        listen()
        from jax._src import compilation_cache
        from langchain_gemma_jax.compile_cache.install import current_store
        settings = named(), jax.config.jax_persistent_cache_enable_xla_caches
        made_by = compilation_cache.get_file_cache.__module__
        print(json.dumps([*settings, made_by, str(current_store().folder.parents[1]), compile_anew()]))
        """,
        JAX_COMPILATION_CACHE_DIR=str(theirs),
    )
    settings = [str(theirs), "xla_gpu_per_fusion_autotune_cache_dir"]
    for_the_engine = str(fresh.root)
    assert said == [*settings, "jax._src.compilation_cache", for_the_engine, "cache_misses"]
    assert list(theirs.glob("*-cache"))
    assert not fresh.root.exists()


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_folder_that_the_user_names_in_the_program_is_used(fresh, when):
    theirs = fresh.home / "theirs"
    said = fresh.run(
        f"""
        def name():
            jax.config.update("jax_compilation_cache_dir", {str(theirs)!r})

        listen()
        if {when!r} == "before":
            name()
        import langchain_gemma_jax
        if {when!r} == "after":
            compile_anew()
            name()
        said = [compile_anew(), compile_anew(), named()]
        from pathlib import Path
        from langchain_gemma_jax.compile_cache.install import install, move
        install()
        move(Path({str(fresh.home)!r}, "elsewhere"))
        print(json.dumps(said + [named()]))
        """,
        quiet=False,  # what JAX says of its own cache is theirs too
    )
    assert said == ["cache_misses", "cache_hits", str(theirs), str(theirs)]
    assert "CompileCacheWarning" not in fresh.stderr
    assert list(theirs.glob("*-cache"))
    assert len(fresh.entries) == (when == "after")


@pytest.mark.long
@pytest.mark.parametrize("switch", [{"GEMMA_JAX_COMPILE_CACHE": "off"}, {"JAX_ENABLE_COMPILATION_CACHE": "false"}])
def test_what_is_switched_off_is_not_installed(fresh, switch):
    said = fresh.run(
        """
        import langchain_gemma_jax
        listen()
        from jax._src import compilation_cache
        from langchain_gemma_jax.compile_cache.install import current_store
        compile_anew()
        print(json.dumps([named(), compilation_cache.get_file_cache.__module__, current_store()]))
        """,
        **switch,
    )
    assert said == [None, "jax._src.compilation_cache", None]
    assert not fresh.root.exists()


IMPOSSIBLE = {
    "a home where nothing can be made": (["-W", "error"], {"HOME": "/proc/self", "GEMMA_JAX_CACHE_DIR": ""}),
    "a value that says nothing": ([], {"GEMMA_JAX_COMPILE_CACHE": "perhaps"}),
}


@pytest.mark.long
@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_cannot_be_done_is_one_warning_and_no_error(fresh, what):
    flags, environment = IMPOSSIBLE[what]
    script = "import langchain_gemma_jax; listen(); compile_anew(); compile_anew(); print(0)"
    fresh.run(script, *flags, quiet=False, **environment)
    (message,) = [line for line in fresh.stderr.splitlines() if "warn_once" not in line]  # Python shows the line too
    assert "Compiled programs are not kept: " in message


def test_jax_is_met_however_it_is_imported(tmp_path):
    """A stand-in for JAX, that fails to be imported once, looked for by finders of every kind."""
    tmp_path.joinpath("jax").mkdir()
    tmp_path.joinpath("jax", "__init__.py").write_text(
        "import sys, time\n"
        "time.sleep(0.05)\n"
        "sys.fails = getattr(sys, 'fails', 0) + 1\n"
        "if sys.fails == 1: raise ImportError('the first time')\n"
    )
    script = """
        import importlib, importlib.util, sys, threading
        import langchain_gemma_jax
        from langchain_gemma_jax.compile_cache import install as installing

        pointed = []
        installing._cache.point_jax = lambda **_: pointed.append(sys.modules["jax"].__spec__._initializing)
        installing.install()
        assert [getattr(finder, "name", "") for finder in sys.meta_path].count("jax") == 1

        class AsksAll:  # as a package for hooks does, and as ours does too
            def find_spec(self, name, path=None, target=None):
                others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
                return next((spec for other in others if (spec := other.find_spec(name, path, target))), None)

        class Ancient:
            def find_module(self, name, path=None):
                return None

        sys.meta_path[:0] = [AsksAll(), Ancient()]
        assert importlib.util.find_spec("jax") and importlib.util.find_spec("jaxx") is None and not pointed
        try:
            import jax
        except ImportError as error:
            assert str(error) == "the first time" and not pointed and "jax" not in sys.modules
        threads = [threading.Thread(target=importlib.import_module, args=["jax"]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        import jax
        importlib.reload(jax)
        assert pointed == [True], pointed  # once, before anybody else could use it
        assert "exec_module" not in vars(jax.__spec__.loader)
        assert not any(getattr(finder, "name", "") == "jax" for finder in sys.meta_path)
    """
    result = subprocess.run(
        [sys.executable, "-c", dedent(script)],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")


# And in this process, whose JAX is told nothing: it has a folder of its own.


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "theirs")
    fresh = installing._Cache()
    monkeypatch.setattr(installing, "_cache", fresh)
    move(tmp_path / "xla")
    return fresh


def test_a_folder_has_one_store(cache, tmp_path):
    store = current_store()
    assert store is store_for(jax.local_devices()[0])
    assert (store.folder, store.cap) == (tmp_path / "xla" / platform_folder() / "cpu", DEFAULT_CAP)
    move(tmp_path / "elsewhere")
    assert current_store().root == tmp_path / "elsewhere"
    move(tmp_path / "xla")
    assert current_store() is store
    move(None)
    assert current_store() is None


def test_a_folder_is_named_for_the_kind_of_device(cache):
    device = SimpleNamespace(device_kind="NVIDIA H200 (80 GB)/../x")
    assert store_for(device).folder.name == "nvidia-h200-80-gb-x"
    assert store_for(SimpleNamespace(device_kind="../")).folder.name == "device"


@pytest.mark.parametrize(("size", "cap"), [(12345, 12345), (-1, DEFAULT_CAP), (0, None)])
def test_the_size_that_the_user_gave_jaxs_cache_is_that_of_ours(cache, size, cap):
    jax.config.update("jax_compilation_cache_max_size", size)
    try:
        assert getattr(current_store(), "cap", None) == cap
    finally:
        jax.config.update("jax_compilation_cache_max_size", -1)


def test_a_way_up_in_the_name_of_the_folder_is_followed(cache, tmp_path):
    move(tmp_path / "there" / ".." / "here")
    assert current_store().root == tmp_path / "here"


def test_a_folder_that_depends_on_where_one_is_is_refused():
    with pytest.raises(InputError, match="cache_dir: expected an absolute folder, or None to keep nothing, found 'x'"):
        move(Path("x"))


def test_a_jax_that_cannot_be_met_is_one_warning(monkeypatch, said):
    cache = installing._Cache()
    cache._root, cache._root_is_known = Path("/nowhere"), True
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.delattr(jax_cache, "get_file_cache")
    cache.point_jax()
    cache.point_jax()
    assert jax.config.jax_compilation_cache_dir is None
    assert len(said) == 1
    assert "get_file_cache" in said.pop()
