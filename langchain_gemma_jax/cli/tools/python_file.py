"""Tools of a Python file: those that it made with LangChain's ``@tool``, else its documented public functions."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

from langchain_core.tools import BaseTool, tool

from langchain_gemma_jax.errors import InputError


def tools_of(file: str) -> list[BaseTool]:
    """Return a file's tools.

    These are the items of its list ``tools``, if it has one; else all of LangChain's tools in it; if there are none,
    its functions that have a docstring and do not begin with an underscore.

    Raises:
        InputError: there is no such file, it raises, or there is no tool in it.
    """
    module = _run(Path(file).expanduser())
    listed = getattr(module, "tools", None)
    found = list(listed) if isinstance(listed, list | tuple) else [each for each in vars(module).values() if _is(each)]
    if not found:
        found = [each for name, each in vars(module).items() if _may_be_one(name, each, module)]
    if not found:
        raise InputError(
            f"{file}: expected tools in it, and found none. Write functions with type hints and a docstring, or use "
            "LangChain's @tool."
        )
    return [_as_tool(each, file) for each in found]


def _run(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("gemma_jax_tools", file) if file.suffix == ".py" else None
    if spec is None or spec.loader is None or not file.is_file():
        raise InputError(f"--tools: expected a Python file such as tools.py, found {str(file)!r}.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the second: a script that was meant to be run
        raise InputError(f"{file} could not be run: {type(error).__name__}: {error}") from error
    return module


def _is(value: object) -> bool:
    return isinstance(value, BaseTool)


def _may_be_one(name: str, value: object, module: ModuleType) -> bool:
    own = inspect.isfunction(value) and value.__module__ == module.__name__
    return own and not name.startswith("_") and bool(inspect.getdoc(value))


def _as_tool(value: object, file: str) -> BaseTool:
    if isinstance(value, BaseTool):
        return value
    if not callable(value):
        raise InputError(f"{file}: expected functions or LangChain's tools in its list `tools`, found {value!r}.")
    try:
        made = tool(value)
    except Exception as error:
        raise InputError(f"{file}: {value!r} cannot be a tool: {error}") from error
    if not isinstance(made, BaseTool):
        raise InputError(f"{file}: {value!r} cannot be a tool.")
    return made
