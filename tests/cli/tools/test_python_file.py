"""Tools of a Python file: those that it lists, else LangChain's, else its functions."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.cli.tools.python_file import tools_of
from langchain_gemma_jax.errors import InputError

FUNCTIONS = '''
from os.path import join
from langchain_core.tools import tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
def _hidden() -> int:
    """Hide."""
    return 1
def undocumented() -> int:
    return 2
'''
TOOL = '@tool\ndef ring() -> str:\n    """Ring."""\n    return "dong"\n'


@pytest.mark.parametrize(
    ("more", "names"), [("", ["add"]), (TOOL, ["ring"]), (f"{TOOL}tools = [undocumented, add]", None)]
)
def test_which_are_taken(tmp_path, more, names):
    file = tmp_path / "tools.py"
    file.write_text(FUNCTIONS + more)
    if names is None:
        with pytest.raises(InputError, match=r"undocumented.* cannot be a tool"):
            tools_of(str(file))
    else:
        assert [each.name for each in tools_of(str(file))] == names


@pytest.mark.parametrize(
    ("content", "says"),
    [("1 / 0", "could not be run: ZeroDivisionError"), ("raise SystemExit", "could not be run: SystemExit"),
     ("number = 1", "expected tools in it, and found none"), ("tools = [1]", "found 1")],
)  # fmt: skip
def test_files_without_any_are_refused(tmp_path, content, says):
    (tmp_path / "x.py").write_text(content)
    with pytest.raises(InputError, match=says):
        tools_of(str(tmp_path / "x.py"))
    with pytest.raises(InputError, match="expected a Python file"):
        tools_of(str(tmp_path / "gone.py"))
