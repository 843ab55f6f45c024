"""Tests look at no clock, and wait as long as pytest lets them: how long something takes is the machine's affair.

What costs too much is counted (``tests/counted.py``, ``tests/loop_turns.py``), and what is fast is measured by
``benchmarks/``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import LONG, until

ROOT = Path(__file__).parents[1]
CLOCKS = {f"{name}{unit}" for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
          for unit in ("", "_ns")}  # fmt: skip
WAITS = {"join", "wait", "result", "acquire", "communicate", "wait_for", "urlopen", "get"}
STARTS = {"subprocess.run", "subprocess.check_call", "subprocess.check_output", "subprocess.call"}


def clocked(source: str) -> list[str]:
    """Return the lines of a test file that compare a clock, or that wait for less than a test may take."""
    nodes = list(ast.walk(ast.parse(source)))
    modules = {alias.asname or alias.name for node in nodes if isinstance(node, ast.Import)
               for alias in node.names if alias.name == "time"}  # fmt: skip
    names = {alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom)
             and node.module == "time" for alias in node.names if alias.name in CLOCKS}  # fmt: skip

    def reads(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=attr)):
                return module in modules and attr in CLOCKS
            case ast.Call(func=ast.Name(id=name)):
                return name in names
        return False

    found = set(_hurried(nodes)) | set(_compared(nodes, reads) if modules or names else ())
    return [source.splitlines()[line - 1].strip() for line in sorted(found)]


def _compared(nodes: list[ast.AST], reads) -> Iterator[int]:
    """Lines where what came from a clock is compared, in the function that read it."""
    for scope in nodes:
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        read: set[str] = set()
        lines = [node for node in ast.walk(scope) if isinstance(node, ast.Assign | ast.AugAssign | ast.Compare)]
        for node in sorted(lines, key=lambda node: (node.lineno, node.col_offset)):
            if isinstance(node, ast.Compare):
                if any(_of_a_clock(part, reads, read) for part in (node.left, *node.comparators)):
                    yield node.lineno
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                read |= {ast.unparse(name) for name, value in pairs if _of_a_clock(value, reads, read)}


def _of_a_clock(node: ast.AST, reads, read: set[str]) -> bool:
    """Return True for a clock's time, what was kept of one, and what is calculated of either."""
    if reads(node) or (isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in read):
        return True
    if isinstance(node, ast.Call) and ast.unparse(node.func) not in {
        "min",
        "max",
        "abs",
        "sum",
        "round",
        "int",
        "float",
    }:
        return False  # what others make of a time is theirs
    return any(_of_a_clock(part, reads, read) for part in ast.iter_child_nodes(node))


def _hurried(nodes: list[ast.AST]) -> Iterator[int]:
    """Lines that wait for a number of seconds that is less than a test's own limit.

    A look that may be in vain is none: one of less than a second, of whose end nothing is made but to look again.
    """
    looks = {id(part) for node in nodes if (look := _looked_at(node)) for part in ast.walk(look)}
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        last = name.rpartition(".")[2]
        values = [keyword.value for keyword in node.keywords if keyword.arg == "timeout"]
        if name == "pytest.mark.timeout" or (last in {"join", "wait", "result"} and len(node.args) == 1):
            values += node.args
        elif last == "wait_for" and len(node.args) == 2:
            values += node.args[1:]
        elif last not in WAITS and name not in STARTS:
            continue
        for value in values:
            seconds = value.value if isinstance(value, ast.Constant) else None
            if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds == 0:
                continue
            if seconds < LONG and not (seconds < 1 and id(node) in looks):
                yield node.lineno


def _looked_at(node: ast.AST) -> ast.AST | None:
    """The nodes that are only looked at, in vain perhaps."""
    match node:
        case ast.While(test=test) | ast.Assert(test=ast.UnaryOp(op=ast.Not()) as test) | ast.Expr(value=test):
            return test
        case ast.If(test=test):
            return test
    return None


def test_no_test_looks_at_a_clock_or_is_in_a_hurry():
    files = [path for folder in ("tests", "training/tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 400
    found = {str(path.relative_to(ROOT)): lines for path in files if (lines := clocked(path.read_text()))}
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "def test():\n began = time.monotonic()\n work()\n assert time.monotonic() - began < 5",
        "def test():\n took = -time.thread_time()\n took += time.thread_time()\n print(took < 1)",
        "def test():\n end = time.time() + 5\n while not true() and time.time() < end: pass",
        "def test():\n self.at = time.perf_counter_ns()\n assert self.at < other",
        "from time import process_time as spent\ndef test():\n began = spent()\n assert began < 3",
        "def test():\n began, found = time.monotonic(), 1\n assert max(took, round(time.monotonic() - began)) < 5",
        "thread.join(10)",
        "thread.join(timeout=10)",
        "assert begun.wait(60)",
        "future.result(5)",
        "await asyncio.wait_for(work(), 2)",
        "subprocess.run(command, timeout=60, check=True)",
        "process.communicate(timeout=30)",
        "pytestmark = pytest.mark.timeout(20)",
        "assert begun.wait(0.5)",
        "found = inbox.get(timeout=1)",
    ],
)
def test_clocks_and_hurry_are_seen(source):
    assert len(clocked(f"import time\n{source}\n")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "def test():\n request(deadline=time.monotonic() + 0.1)",
        "def test():\n os.utime(path, (time.time(), 0))\n assert path.stat().st_mtime_ns == 5",
        "def test():\n now = time.time()\n file = add(folder, used=now - 10)\n assert file == add(folder, used=now)",
        "time.sleep(0.1)",
        "while not gate.wait(0.01): look()",
        "assert not freed.wait(0.2)",
        "other.join(0.2)  # in vain",
        "thread.join()",
        "thread.join(LONG)",
        "gate.wait(300)",
        "future.result(0)",
        "engine.load(folder, timeout=0.3)",
        "', '.join(words)",
        "pytest.mark.timeout(1200)",
    ],
)
def test_look_alikes_are_allowed(source):
    assert clocked(f"import time\n{source}\n") == []


def test_waiting_ends_with_what_is_waited_for():
    looks = iter([False, 0, "", "there"])
    until(lambda: next(looks))
    assert list(looks) == []
