"""The source files that a compiled program depends on: the traced files, and all that they import from this package.

A program is looked up on disk without being traced, so its name has a digest of exactly these files. An edit to any
other file, such as a downloader's docstring, does not invalidate any program.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
ROOTS = ("engine/device/programs.py", "engine/executables/signatures.py")  # the traced functions, and their shapes

# All imports in the package are absolute; a test checks that. Parsing each file would slow down every process.
_IMPORT = re.compile(
    r"^[ \t]*(?:from (langchain_gemma_jax[\w.]*) import (\([^)]*\)|[^\n]*)|import (langchain_gemma_jax[\w.]*))",
    re.MULTILINE,
)
_ASIDE = re.compile(r"#[^\n]*| as \w+")


@cache
def source_digest() -> str:
    """Return the digest of the traced source."""
    return digest_of(traced_files(PACKAGE, ROOTS))


@cache
def module_digest(module: str) -> str:
    """Return the digest of one more traced module, such as a storage's, with what it imports from this package."""
    file = Path(str(sys.modules[module].__file__))
    if file.is_relative_to(PACKAGE):
        return digest_of(traced_files(PACKAGE, (file.relative_to(PACKAGE).as_posix(),)))
    return digest_of({module: file.read_text("utf-8")})


def digest_of(files: Mapping[str, str]) -> str:
    """Return one digest of several files' names and texts.

    Raises:
        RuntimeError: there are none.
    """
    if not files:
        raise RuntimeError("No traced source file was found: every program would have the same name. Reinstall.")
    found = hashlib.sha256()
    for name, text in sorted(files.items()):
        content = text.encode()
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def traced_files(package: Path, roots: Sequence[str]) -> dict[str, str]:
    """Return the text of each root and of every file of the package that it imports, directly or not.

    Raises:
        RuntimeError: a root, or a module that is imported, has no source file.
    """
    found: dict[str, str] = {}
    todo = [package / root for root in roots]
    while todo:
        path = todo.pop()
        name = path.relative_to(package).as_posix()
        if name not in found:
            try:
                found[name] = path.read_text("utf-8")
            except OSError as error:
                raise RuntimeError(
                    f"The traced source {name} cannot be read ({error}), and the names of compiled programs depend "
                    "on it. Install langchain-gemma-jax with its .py files."
                ) from error
            todo += _imported(found[name], package)
    return found


def _imported(text: str, package: Path) -> Iterator[Path]:
    """Yield the files that a module imports."""
    for match in _IMPORT.finditer(text):
        base, names, module = match.groups()
        if module is not None:
            yield _file_of(module, package)
            continue
        for name in re.findall(r"\w+", _ASIDE.sub("", names)):
            inside = package.parent.joinpath(*base.split("."), name)
            is_module = inside.with_suffix(".py").is_file() or inside.is_dir()
            yield _file_of(f"{base}.{name}" if is_module else base, package)


def _file_of(module: str, package: Path) -> Path:
    path = package.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
