"""The door: what it shows, and that opening it costs nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import langchain_gemma_jax
from langchain_gemma_jax import errors

ROOT = Path(__file__).parents[1]


def imports_for_type_checkers() -> dict[str, tuple[str, str]]:
    """Public name -> (module, name there), as the TYPE_CHECKING block of the door has it."""
    tree = ast.parse(Path(langchain_gemma_jax.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {
        alias.asname or alias.name: (node.module.removeprefix("langchain_gemma_jax."), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_all_is_sorted_and_without_doubles():
    assert langchain_gemma_jax.__all__ == sorted(set(langchain_gemma_jax.__all__))


@pytest.mark.parametrize("name", langchain_gemma_jax.__all__)
def test_every_public_name_is_there(name):
    assert getattr(langchain_gemma_jax, name) is not None


@pytest.mark.parametrize("name", langchain_gemma_jax.__all__)
def test_completion_offers_a_name_before_it_is_first_used(name, monkeypatch):
    if name in langchain_gemma_jax._LAZY:
        monkeypatch.delitem(vars(langchain_gemma_jax), name, raising=False)
    assert name in dir(langchain_gemma_jax)


def test_type_checkers_and_python_see_the_same_lazy_names():
    engine = {"engine": ("engine.api.process", "engine")}  # at run time the room itself, which can be called
    assert imports_for_type_checkers() == langchain_gemma_jax._LAZY | engine


def test_nothing_else_is_public():
    lazy_and_error_names = {*langchain_gemma_jax._LAZY, *(name for name in dir(errors) if name.endswith("Error"))}
    assert set(langchain_gemma_jax.__all__) == lazy_and_error_names | {"__version__", "engine"}


@pytest.mark.long
@pytest.mark.parametrize(
    "first", ["", "import langchain_gemma_jax.engine.conversations.prefix_index", "import langchain_gemma_jax.engine"]
)
def test_the_engine_can_be_called_whatever_was_imported_first(first):
    script = f"""
        {first}
        from langchain_gemma_jax import Engine, engine
        import langchain_gemma_jax
        assert isinstance(engine(), Engine) and langchain_gemma_jax.engine() is engine()
    """
    subprocess.run([sys.executable, "-c", dedent(script)], cwd=ROOT, check=True)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'ChatGemini'"):
        _ = langchain_gemma_jax.ChatGemini


def test_importing_loads_nothing_but_the_standard_library_and_touches_nothing(tmp_path):
    script = """
        import sys, threading
        seen = set(sys.modules)

        def watch(event, arguments):
            writes = event == "open" and arguments[2] & 0o3  # O_WRONLY or O_RDWR
            if writes or event in {"subprocess.Popen", "socket.__new__", "os.mkdir", "_thread.start_new_thread"}:
                raise SystemExit(f"importing did {event} {arguments}")

        sys.addaudithook(watch)
        import langchain_gemma_jax

        loaded = {name.partition(".")[0] for name in set(sys.modules) - seen}
        foreign = loaded - sys.stdlib_module_names - {"langchain_gemma_jax"}
        if foreign:
            raise SystemExit(f"importing loaded {foreign}")
        if threading.active_count() != 1:
            raise SystemExit("a thread was started")
    """
    for flags in (["-W", "error"], ["-W", "error", "-O"]):
        result = subprocess.run(
            [sys.executable, "-B", *flags, "-c", dedent(script)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "HOME": "/nonexistent", "GEMMA_JAX_COMPILE_CACHE": "on"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
