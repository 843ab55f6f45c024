"""The house rules that a program can check: who imports whom, what is never used, how long a file may be.

Each rule is a function of source text, so each has a test that shows it something bad.
"""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "langchain_gemma_jax"

# From the top of the house to its ground. A module imports from its own room and from the rooms below it.
ROOMS = [
    "cli",
    "cli_models",
    "__init__",
    "middleware",
    "chat_model",
    "chat",
    "routing",
    "dialects",
    "engine",
    "compile_cache",
    "models",
    "config",
    "_jax_check",
    "errors",
]

# Plain Python: neither these nor anything that they import at their top may need JAX.
PLAIN = [
    "__init__", "_jax_check", "chat_model", "chat.*", "routing.*", "config", "dialects", "dialects.*", "errors",
    "engine.__init__", "compile_cache.__init__",
    *(f"compile_cache.{name}" for name in ("claims", "entry", "everywhere", "folder", "install", "platform", "store")),
    *(f"compile_cache.{name}" for name in ("sweep", "upkeep", "warning", "writing")), "cli",
    *(f"engine.{name}" for name in ("buckets", "chunk_plan", "eviction", "generation", "guards", "mailbox", "metrics")),
    *(f"engine.{name}" for name in ("options", "pool.*", "postprocess", "prefix", "request", "route", "scheduler")),
    *(f"engine.{name}" for name in ("settings", "noticeboard", "sharing", "speculate", "stop_strings", "collecting")),
    "models.abstract", "models.catalog", "models.config", "models.hf_config",
]  # fmt: skip
NEEDS_JAX = {"jax", "jaxlib", "flax", "optax", "orbax"}

NEVER_IMPORTED = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "jinja2", "torch", "tensorflow"}
NEVER_CALLED = {"eval", "exec", "__import__"}
NEVER_PASSED = {"trust_remote_code", "allow_pickle"}


@cache
def modules() -> dict[str, str]:
    """Every module of the package and its source, by the name below ``langchain_gemma_jax``."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path.read_text() for path in PACKAGE.rglob("*.py")
    }


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


def imports(source: str, *, at_top_only: bool = False) -> Iterator[str]:
    """The absolute names that a module imports: ``a``, and ``a.b`` for ``from a import b``."""
    todo: list[ast.AST] = [parsed(source)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise AssertionError("imports are absolute")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not (at_top_only and (inside or for_types)):
            todo.extend(ast.iter_child_nodes(node))


def below(imported: str) -> str | None:
    """``models.load`` for ``langchain_gemma_jax.models.load``, None for other people's modules."""
    top, _, rest = imported.partition(".")
    return (rest or "__init__") if top == PACKAGE.name else None


def room(module: str) -> str:
    name = module.partition(".")[0]
    assert name in ROOMS, f"{module} is in no room: say in ROOMS where it belongs"
    return name


def climbs(module: str, source: str) -> list[str]:
    """What a module imports from rooms above its own."""
    rank = ROOMS.index(room(module))
    targets = {target for name in imports(source) if (target := below(name))}
    return sorted(target for target in targets if ROOMS.index(room_of_import(target)) < rank)


def room_of_import(target: str) -> str:
    """The room of what is imported; a name that is no module is one that the door shows."""
    name = target.partition(".")[0]
    return (
        room(target) if name in ROOMS or (PACKAGE / name).exists() or (PACKAGE / f"{name}.py").exists() else "__init__"
    )


def needs(module: str, sources: dict[str, str]) -> set[str]:
    """The top-level packages that importing a module imports, through the modules of this package too."""
    todo, done, found = {module}, set(), set()
    while todo:
        name = todo.pop()
        done.add(name)
        parents = [name.rsplit(".", count)[0] + ".__init__" for count in range(1, name.count(".") + 1)]
        reached = {parent for parent in parents if parent in sources}
        for imported in imports(sources[name], at_top_only=True):
            target = below(imported)
            if target is None:
                found.add(imported.partition(".")[0])
            else:  # `a.b` is the module a.b, the package a.b, or the name b in a
                guesses = (
                    target,
                    f"{target}.__init__",
                    target.rpartition(".")[0],
                    target.rpartition(".")[0] + ".__init__",
                )
                reached |= {guess for guess in guesses if guess in sources}
        todo |= reached - done
    return found


def forbidden(source: str) -> list[str]:
    """The constructs of a module that the house never uses."""
    found = [name for name in imports(source) if name.partition(".")[0] in NEVER_IMPORTED]
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NEVER_CALLED:
            found.append(node.func.id)
        elif isinstance(node, ast.keyword) and node.arg in NEVER_PASSED:
            found.append(str(node.arg))
        elif isinstance(node, ast.With | ast.AsyncWith) and _is_lock(node) and _gives_up_control(node):
            found.append("a lock held across a yield or an await")
    return found


def _is_lock(node: ast.With | ast.AsyncWith) -> bool:
    return any("lock" in ast.unparse(item.context_expr).lower() for item in node.items)


def _gives_up_control(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Yield | ast.YieldFrom | ast.Await) for inner in ast.walk(node))


def reads_environment(source: str) -> bool:
    names = {node.attr for node in ast.walk(parsed(source)) if isinstance(node, ast.Attribute)}
    names |= {name.removeprefix("os.") for name in imports(source) if name.startswith("os.")}
    return bool(names & {"environ", "environb", "getenv", "putenv"})


def test_a_room_knows_nothing_of_the_rooms_above_it():
    assert {module: found for module, source in modules().items() if (found := climbs(module, source))} == {}


def test_plain_modules_do_not_need_jax():
    plain = [name for name in modules() if any(fnmatch(name, plain) for plain in PLAIN)]
    assert len(plain) >= len(PLAIN)
    assert {module: found for module in plain if (found := needs(module, modules()) & NEEDS_JAX)} == {}


def test_a_module_uses_nothing_forbidden_and_says_what_it_is_for():
    assert len(modules()) > 150
    for module, source in modules().items():
        assert forbidden(source) == [], module
        assert reads_environment(source) <= (module == "config"), f"{module}: only config.py reads the environment"
        assert ast.get_docstring(parsed(source)), f"{module} begins with what it is for"


def test_files_are_small():
    lengths = {name: source.count("\n") for name, source in modules().items()}
    assert statistics.median(lengths.values()) <= 150
    assert {name: length for name, length in lengths.items() if length > 400} == {}


# And the rules themselves, shown something bad.


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("models.load", "from langchain_gemma_jax.engine.kv import Cache"),
        ("models.load", "def f():\n    import langchain_gemma_jax.chat_model"),
        ("models.load", "from langchain_gemma_jax import Model"),
        ("errors", "import langchain_gemma_jax.config"),
        ("engine.engine", "from langchain_gemma_jax import dialects"),
    ],
)
def test_climbing_is_seen(module, source):
    assert climbs(module, source) != []


def test_descending_is_allowed():
    assert climbs("engine.engine", "from langchain_gemma_jax import config, errors\nimport jax") == []


def test_a_module_without_a_room_is_seen():
    with pytest.raises(AssertionError, match="in no room"):
        climbs("utils", "")


@pytest.mark.parametrize(
    "way", ["import jax.numpy as jnp", "from langchain_gemma_jax.b import x", "from langchain_gemma_jax.c import x"]
)
def test_jax_is_seen_through_other_modules(way):
    sources = {"a": way, "b": "from jax import lax", "c.__init__": "import jax", "__init__": ""}
    assert "jax" in needs("a", sources)


def test_jax_is_seen_through_the_package_around_a_module():
    assert "jax" in needs("p.plain", {"p.plain": "import re", "p.__init__": "import jax"})


def test_jax_inside_a_function_is_allowed():
    assert needs("a", {"a": "def f():\n    import jax"}) == set()


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "def f():\n    from torch import load",
        "eval('1')",
        "load(x, trust_remote_code=True)",
        "np.load(x, allow_pickle=True)",
        "def f():\n    with self._lock:\n        yield 1",
    ],
)
def test_forbidden_constructs_are_seen(source):
    assert forbidden(source) != []


@pytest.mark.parametrize(
    "source", ["model.eval()", "raise ValueError('never pickle, never eval()')", "with lock:\n    x = 1"]
)
def test_look_alikes_are_allowed(source):
    assert forbidden(source) == []


@pytest.mark.parametrize("source", ["os.environ['X']", "os.getenv('X')", "from os import environ"])
def test_reading_the_environment_is_seen(source):
    assert reads_environment(source)


def test_nothing_outside_imports_training():
    root = PACKAGE.parent
    folders = ("langchain_gemma_jax", "benchmarks", "examples", "scripts", "tests")
    files = [path for folder in folders for path in (root / folder).rglob("*.py")]
    assert len(files) > 300
    found = [path for path in files if any(name.partition(".")[0] == "training" for name in imports(path.read_text()))]
    assert found == []
    assert "training" in {name.partition(".")[0] for name in imports((root / "training" / "__main__.py").read_text())}
