import ast
import shutil
from pathlib import Path

import pytest

from langchain_gemma_jax.engine.executables import traced_source
from langchain_gemma_jax.engine.executables.traced_source import (
    PACKAGE,
    ROOTS,
    digest_of,
    module_digest,
    traced_files,
)
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma

GEMMA = "models/gemma/gemma_architecture.py"  # an architecture's module counts beside the engine's own
UNTRACED = (
    "models/hub/download.py",
    "engine/loop/owner.py",
    "errors.py",
    "config.py",
    "chat_model.py",
    "models/recipes/probe.py",
)
TRACED = (
    "engine/device/programs.py",
    "engine/device/sampling.py",
    "engine/executables/signatures.py",
    "models/gemma/attention.py",
    "models/gemma/forward.py",
    "models/seams/linear.py",
)


@pytest.fixture
def copy(tmp_path):
    """The package's Python files, somewhere else."""
    for path in PACKAGE.rglob("*.py"):
        target = tmp_path / PACKAGE.name / path.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return tmp_path / PACKAGE.name


def test_an_edit_makes_other_names_only_where_it_is_traced(copy):
    def digest():
        return digest_of(traced_files(copy, (*ROOTS, GEMMA)))

    known = {digest()}
    for name in UNTRACED:
        (copy / name).write_text((copy / name).read_text() + "\n# edited\n")
        assert digest() in known, name
    for name in TRACED:
        (copy / name).write_text((copy / name).read_text() + "\n# edited\n")
        assert digest() not in known, name
        known.add(digest())


def test_the_names_of_programs_hold_the_digest():
    assert traced_source.source_digest() == digest_of(traced_files(PACKAGE, ROOTS))


def test_an_architectures_own_module_counts_with_all_that_it_imports():
    known = set(traced_files(PACKAGE, (GEMMA,)))
    assert {"models/gemma/attention.py", "models/gemma/forward.py", "models/seams/linear.py"} <= known
    assert module_digest(Gemma.__module__) == digest_of(traced_files(PACKAGE, (GEMMA,)))


def test_no_file_is_an_error(copy):
    with pytest.raises(RuntimeError, match="No traced source"):
        digest_of(traced_files(copy, ()))
    (copy / "models" / "gemma" / "attention.py").unlink()
    with pytest.raises(RuntimeError, match=r"models/gemma/attention\.py cannot be read"):
        traced_files(copy, (GEMMA,))
    with pytest.raises(RuntimeError, match="moved"):
        traced_files(copy, ["moved.py"])


def test_the_closure_is_the_one_that_python_sees():
    """Read by a pattern, for speed; here by Python's own parser."""

    def module_file(name: str) -> Path | None:
        path = PACKAGE.parent.joinpath(*name.split("."))
        return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)

    todo, seen = [PACKAGE / root for root in ROOTS], set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if module_file(name) else str(node.module) for name in names]
            todo += [file for name in names if name.startswith(PACKAGE.name) and (file := module_file(name))]
    assert {path.relative_to(PACKAGE).as_posix() for path in seen} == set(traced_files(PACKAGE, ROOTS))
