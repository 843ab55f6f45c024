"""The house rules that a program can check: who imports whom, what is never used, how long a file may be.

Each rule is a function of source text, so each has a test that shows it something bad.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path

import pytest

from scripts.words import BRITISH

PACKAGE = Path(__file__).parents[1] / "langchain_gemma_jax"

# From the top of the house to its ground. A module imports from its own room and from the rooms below it. A module's
# room is the longest of these names that its own name begins with.
ROOMS = [
    "cli",
    "cli.serving",
    "cli.verbs",
    "cli.health",
    "cli.tools",
    "cli.terminal",
    "scale",
    "scale.hosts",
    "server",
    "server.browser",
    "server.ollama",
    "server.apis",
    "server.http",
    "__init__",
    "deepagents_profiles",
    "middleware",
    "chat_models",
    "decisions",
    "embeddings",
    "llms",
    "chat_model",
    "model_errors",
    "client",
    "wire",
    "chat",
    "chat.calling",
    "chat.model_choice",
    "chat.answering",
    "chat.asking",
    "chat.history",
    "observe",
    "observe.testing",
    "observe.jax_code",
    "observe.metrics",
    "observe.files",
    "settings",
    "routing",
    "dialects",
    "dialects.native",
    "dialects.templated",
    "dialects.fenced",
    "dialects.conversation",
    "engine",  # the door to its rooms, which is a function
    "engine.api",
    "engine.loop",
    "engine.residency",
    "engine.steps",
    "engine.conversations",
    "engine.prefix_store",
    "engine.executables",
    "engine.requests",
    "engine.drafting",
    "engine.device",
    "engine.base",
    "engine.host",
    "grammar.schema",
    "grammar",
    "compile_cache",
    "models.torchax.doors",
    "models",
    "models.loading",
    "models.encoders",
    "models.torchax",
    "models.adapters",
    "models.hub",
    "models.gguf",
    "models.checkpoint.quantized",
    "models.mapped",
    "models.packed",
    "models.vision",
    "models.gemma",
    "models.checkpoint",
    "models.hearing",
    "models.mesh",
    "models.recipes",
    "models.checkpoint.official",
    "models.tokenizer",
    "models.seams",
    "models.configuration",
    "kernels",
    "media",
    "private",
    "config",
    "provider",
    "when_imported",
    "ancestry",
    "reentry",
    "jax_check",
    "charts",
    "bounded_json",
    "stopping",
    "errors",
]

# Advice, which ``python -m tests.test_house`` gives: more than this is looked at again.
MOST_FILES = 15  # in a room, beside its __init__
MOST_LINES = 500  # of a file

MOST_LEVELS = {"engine.": 12, "models": 8}  # of imports between rooms
MOST_METHODS = 25  # of a class in the engine ...
MOST_CLASS_LINES = 300  # ... and the most lines of one: what needs more has parts

# Plain Python: neither these nor anything that they import at their top may need JAX.
PLAIN = [
    "__init__", "jax_check", "ancestry", "reentry", "chat_model", "embeddings", "llms", "chat.*", "client.*", "wire.*",
    "routing.*", "settings.*", "config", "dialects.*", "charts", "grammar.*", "errors", "cli.*", "private.*",
    "engine.__init__", "engine.base.*", "engine.requests.*", "scale.plan", "scale.demand", "scale.ray",
    "engine.drafting.*", "scale.ray_policy", "scale.hosts.__init__", "scale.hosts.group", "scale.hosts.line",
    *(f"engine.host.{name}" for name in ("error_copies", "gc_pause", "own_log")),
    *(f"engine.api.{name}" for name in ("__init__", "generation", "report")),
    *(f"engine.conversations.{name}" for name in ("prefix_index", "kv_eviction", "host_index", "transfer_costs")),
    "engine.prefix_store.*",
    *(f"engine.steps.{name}" for name in ("scheduler", "postprocess")),
    *(f"engine.residency.{name}" for name in ("ledger", "ledger_entry", "model_status", "eviction_log", "status_file")),
    *(f"compile_cache.{name}" for name in ("__init__", "entry", "everywhere", "install", "platform", "store")),
    *(f"compile_cache.{name}" for name in ("sweep", "warning")),
    "models.configuration.*", "models.seams.media_support", "models.tokenizer.*", "models.hub.*", "media.*",
]  # fmt: skip
NEEDS_JAX = {"jax", "jaxlib", "flax", "optax", "orbax"}

# A summary that opens with one of these speaks of something that its reader has not been told.
RIDDLES = [
    "It", "They", "That", "This", "These", "Those", "Its", "Them", "Their", "None", "Whose", "The same",
    "With", "Of", "So", "Beside", "Behind", "In", "On",
]  # fmt: skip
RIDDLE = re.compile(rf"\W*(?:{'|'.join(RIDDLES)})(?![\w-])", re.IGNORECASE)  # "Items" and "In-flight" are subjects

# A summary begins with a verb or the thing itself ("Return a model's status at `now`"), not with a question. In
# langchain_core, huggingface_hub and httpx 1 % of all summaries do.
QUESTIONS = [
    "What", "Whatever", "Whether", "How", "However", "Who", "Whoever", "Whom", "Whose", "Which", "Whichever", "Where",
    "Wherever", "When", "Whenever", "Why",
]  # fmt: skip
QUESTION = re.compile(rf"\W*(?:{'|'.join(QUESTIONS)})(?![\w-])", re.IGNORECASE)
MOST_QUESTIONS = 0.01  # the share of docstrings that may

# Classes and types that two modules call the same, still. No new ones.
TWICE_NAMED = {"Params", "Tree"}

# Names that fit anything, so they say nothing. What a caller sees in ``Signals`` keeps the one that it has.
EMPTY_NAMES = {"told", "said", "beside", "behind", "anybody", "somebody", "nobody", "everybody", "whoever"}
NAMED_SO = {"routing.signals.said", "chat.model_choice.conversation_signals.said"}

NEVER_IMPORTED = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "jinja2", "torch", "tensorflow"}
NEVER_CALLED = {"eval", "exec", "__import__"}
NEVER_PASSED = {"allow_pickle"}
LOCK = re.compile(r"(?<![a-z])r?locks?(?![a-z])", re.IGNORECASE)  # as a word of a name: not in "clock" or "block"
NEVER_DECIDED = {"trust_remote_code"}  # a caller may say so, and that is passed on

STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)  # what may hold an import


@cache
def modules() -> dict[str, str]:
    """Every module of the package and its source, by the name below ``langchain_gemma_jax``."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path.read_text() for path in PACKAGE.rglob("*.py")
    }


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(source)))


@cache
def imports(source: str, *, at_top_only: bool = False) -> tuple[str, ...]:
    """The absolute names that a module imports: ``a``, and ``a.b`` for ``from a import b``."""
    return tuple(_imports(source, at_top_only=at_top_only))


def _imports(source: str, *, at_top_only: bool) -> Iterator[str]:
    todo: list[ast.AST] = [parsed(source)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise AssertionError("imports are absolute")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not (at_top_only and (inside or for_types)):
            todo += [each for each in ast.iter_child_nodes(node) if isinstance(each, STATEMENTS)]


def below(imported: str) -> str | None:
    """``models.load`` for ``langchain_gemma_jax.models.loading.load``, None for other people's modules."""
    top, _, rest = imported.partition(".")
    return (rest or "__init__") if top == PACKAGE.name else None


def room(module: str) -> str:
    """The room of a module."""
    parts = module.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    found = next((name for name in names if name in ROOMS), None)
    assert found is not None, f"{module} is in no room: say in ROOMS where it belongs"
    folder = module.removesuffix(".__init__").rpartition(".")[0] if "." in module else ""
    known = folder == "" or folder in ROOMS or module.removesuffix(".__init__") in ROOMS
    assert known, f"{folder} is a room that ROOMS does not know"
    return found


def target_module(imported: str) -> str | None:
    """The module that an import reaches: itself, the one that has the name, or the door's."""
    name = below(imported)
    while name:
        for guess in (name, f"{name}.__init__"):
            if guess in modules():
                return guess
        name = name.rpartition(".")[0]
    return None if name is None else "__init__"


def climbs(module: str, source: str) -> list[str]:
    """The imports of a module from rooms above its own."""
    own = room(module)
    found = set()
    for imported in imports(source):
        target = target_module(imported)
        if target is not None and target != module:
            there = room(target)
            if ROOMS.index(there) < ROOMS.index(own):
                found.add(target)
    return sorted(found)


def strangers(module: str, source: str) -> list[str]:
    """The imports of a module that are private to another: a file, or a name, that begins with an underscore."""
    found = []
    for imported in imports(source):
        if (name := below(imported)) is None:
            continue
        owner = module.removesuffix(".__init__").rpartition(".")[0]
        for at, part in enumerate(parts := name.split(".")):
            private = part.startswith("_") and not part.startswith("__")
            if private and ".".join(parts[:at]) != owner:
                found.append(name)
    return found


def circles(sources: dict[str, str]) -> list[list[str]]:
    """Modules that import each other in a circle, for types too. The packages around them do not count."""
    edges = {
        name: {target for each in imports(source) if (target := target_module(each)) and target != name}
        for name, source in sources.items()
    }
    found, state = [], {}

    def visit(name: str, path: list[str]) -> None:
        state[name] = "open"
        for target in sorted(edges.get(name, ())):
            if target.endswith("__init__"):
                continue
            if state.get(target) == "open":
                found.append([*path[path.index(target) :], target])
            elif target not in state:
                visit(target, [*path, target])
        state[name] = "done"

    for name in sorted(sources):
        if name not in state:
            visit(name, [name])
    return found


def levels(inside: str) -> int:
    """How many levels the rooms below a name have: the longest chain of them that import each other."""
    edges: dict[str, set[str]] = {}
    for name, source in modules().items():
        if name.startswith(inside):
            targets = {target for each in imports(source) if (target := target_module(each))}
            edges.setdefault(room(name), set()).update(room(target) for target in targets if target.startswith(inside))

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(target) for target in edges[name] - {name} if target in edges), default=0)

    return max(map(depth, edges))


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


def forbidden(source: str, allowed: frozenset[str] = frozenset()) -> list[str]:
    """The constructs of a module that the house never uses, but for packages that this one may import."""
    tops = NEVER_IMPORTED - allowed
    found = [name for name in imports(source) if name.partition(".")[0] in tops]
    for node in nodes(source):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NEVER_CALLED:
            found.append(node.func.id)
        elif isinstance(node, ast.keyword):
            decided = node.arg in NEVER_DECIDED and isinstance(node.value, ast.Constant)
            found += [str(node.arg)] * (decided or node.arg in NEVER_PASSED)
        elif isinstance(node, ast.With | ast.AsyncWith) and _is_lock(node) and _gives_up_control(node):
            found.append("a lock held across a yield or an await")
    return found


def _is_lock(node: ast.With | ast.AsyncWith) -> bool:
    return any(LOCK.search(ast.unparse(item.context_expr)) for item in node.items)


def _gives_up_control(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Yield | ast.YieldFrom | ast.Await) for inner in ast.walk(node))


def reads_environment(source: str) -> bool:
    names = {node.attr for node in nodes(source) if isinstance(node, ast.Attribute)}
    names |= {name.removeprefix("os.") for name in imports(source) if name.startswith("os.")}
    return bool(names & {"environ", "environb", "getenv", "putenv"})


def summaries(source: str) -> list[str]:
    """The first lines of a module's docstrings. Strings below a field or a constant count too."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    written = [node for node in nodes(source) if isinstance(node, documented)]
    docs = [ast.get_docstring(node) for node in written]
    for node in written:
        for one, following in pairwise(node.body):
            if isinstance(one, ast.Assign | ast.AnnAssign) and isinstance(following, ast.Expr):
                value = following.value.value if isinstance(following.value, ast.Constant) else None
                docs.append(cleandoc(value) if isinstance(value, str) else None)
    return [doc.partition("\n")[0] for doc in docs if doc]


def riddles(source: str) -> list[str]:
    """The summaries of a module that open with a pronoun or a bare preposition, and so name no subject."""
    return [summary for summary in summaries(source) if RIDDLE.match(summary)]


def questions(source: str) -> list[str]:
    """The summaries of a module that open like a question."""
    return [summary for summary in summaries(source) if QUESTION.match(summary)]


def british(source: str) -> list[str]:
    """The words of a file that are in British spelling: in names, messages and comments."""
    return re.findall(rf"\w*(?:{BRITISH})\w*", source, re.IGNORECASE)


def twice_named(sources: dict[str, str]) -> dict[str, list[str]]:
    """The names that classes and types of several modules have, and those modules. Private ones do not count."""
    found: dict[str, list[str]] = {}
    for module, source in sources.items():
        for node in parsed(source).body:
            alias = isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"
            name = node.name if isinstance(node, ast.ClassDef) else ast.unparse(node.target) if alias else "_"
            if not name.startswith("_"):
                found.setdefault(name, []).append(module)
    return {name: where for name, where in found.items() if len(where) > 1}


def classes(source: str) -> list[ast.ClassDef]:
    return [node for node in nodes(source) if isinstance(node, ast.ClassDef)]


def methods(node: ast.ClassDef) -> int:
    return sum(isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) for inner in node.body)


def large_classes(source: str) -> list[str]:
    """The classes of a module that have more methods, or more lines, than one idea needs."""
    lines = {node: (node.end_lineno or 0) - node.lineno + 1 for node in classes(source)}
    return [
        f"{node.name}: {methods(node)} methods in {count} lines"
        for node, count in lines.items()
        if methods(node) > MOST_METHODS or count > MOST_CLASS_LINES
    ]


def divided_classes(sources: dict[str, str]) -> list[str]:
    """The classes that inherit methods from another of these modules: one class in several files, which has no parts.

    A class of values alone, such as a record that others add fields to, has no methods.
    """
    homes = {node.name: (module, node) for module, source in sources.items() for node in classes(source)}
    found = []
    for module, source in sources.items():
        for node in classes(source):
            for base in node.bases:
                home, parent = homes.get(ast.unparse(base).partition("[")[0].rpartition(".")[2], (module, node))
                if home != module and methods(parent):
                    found.append(f"{module}.{node.name} inherits from {home}.{parent.name}")
    return found


def advice() -> list[str]:
    """Rooms and files that have grown: advice, and no rule."""
    rooms = {name: len([*PACKAGE.joinpath(*name.split(".")).glob("*.py")]) - 1 for name in ROOMS}
    found = [f"{name}: {count} files" for name, count in rooms.items() if count > MOST_FILES]
    lengths = {name: source.count("\n") for name, source in modules().items()}
    return found + [f"{name}: {length} lines" for name, length in lengths.items() if length > MOST_LINES]


def test_a_room_knows_nothing_of_the_rooms_above_it():
    assert {name: found for name, source in modules().items() if (found := climbs(name, source))} == {}


def test_nobody_reaches_for_what_is_private_to_another():
    assert {name: found for name, source in modules().items() if (found := strangers(name, source))} == {}


def test_no_module_imports_itself_through_others():
    assert circles(modules()) == []


def test_every_room_is_there_and_says_what_it_is():
    for name in ROOMS:
        folder = PACKAGE.joinpath(*name.split("."))
        if folder.is_dir():
            said = " ".join((ast.get_docstring(parsed((folder / "__init__.py").read_text())) or "").split())
            assert "may import" in said or "imports no other" in said, f"{name}: say what it may import"
            assert "thread" in said, f"{name}: say which thread runs it"
        else:
            assert name in modules(), f"the room {name} is gone"


def test_imports_between_rooms_have_few_levels():
    assert {inside: levels(inside) for inside in MOST_LEVELS if levels(inside) > MOST_LEVELS[inside]} == {}


def test_plain_modules_do_not_need_jax():
    for pattern in PLAIN:
        assert any(fnmatch(name, pattern) for name in modules()), f"nothing is called {pattern} any more"
    plain = [name for name in modules() if any(fnmatch(name, pattern) for pattern in PLAIN)]
    assert {name: found for name in plain if (found := needs(name, modules()) & NEEDS_JAX)} == {}


def test_a_module_uses_nothing_forbidden_and_says_what_it_is_for():
    for module, source in modules().items():
        allowed = frozenset({"torch"} if module.startswith("models.torchax.") else ())
        assert forbidden(source, allowed) == [], module
        assert not allowed & {name.partition(".")[0] for name in imports(source, at_top_only=True)}, module
        assert reads_environment(source) <= (module == "config"), f"{module}: the environment is read in config.py only"
        assert ast.get_docstring(parsed(source)), f"{module}: a module begins with what it is for"


def test_one_name_means_one_thing():
    assert {name: where for name, where in twice_named(modules()).items() if name not in TWICE_NAMED} == {}


def test_most_files_are_small():
    assert statistics.median(source.count("\n") for source in modules().values()) <= 150


def test_classes_are_small_and_have_parts():
    engine = {name: source for name, source in modules().items() if name.startswith("engine.")}
    assert len(engine) > 60
    assert {name: found for name, source in engine.items() if (found := large_classes(source))} == {}
    assert divided_classes(engine) == []


def test_a_docstring_can_be_read_alone():
    found = {name: bad for name, source in modules().items() if (bad := riddles(source))}
    assert found == {}, "a summary names its subject, or says what is returned"


def test_names_say_what_they_name():
    found = {f"{module}.{name}" for module, source in modules().items() for name in empty_names(source)}
    assert found == NAMED_SO


def test_few_docstrings_open_like_a_question():
    found = {name: bad for name, source in modules().items() if (bad := questions(source))}
    count, total = sum(map(len, found.values())), sum(len(summaries(source)) for source in modules().values())
    assert total > 3000
    assert count <= MOST_QUESTIONS * total, f"{count} of {total} do, begin them with a verb or a noun: {found}"


def test_names_and_messages_are_in_american_spelling():
    assert {name: bad for name, source in modules().items() if (bad := british(source))} == {}


# And the rules themselves, shown something bad.


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("models.load", "from langchain_gemma_jax.engine.device.sequence_kv import Cache"),
        ("models.load", "def f():\n    import langchain_gemma_jax.chat_model"),
        ("models.load", "from langchain_gemma_jax import Model"),
        ("errors", "import langchain_gemma_jax.config"),
        ("engine.api.engine", "from langchain_gemma_jax import dialects"),
    ],
)
def test_climbing_is_seen(module, source):
    assert climbs(module, source) != []


def test_descending_is_allowed():
    assert climbs("engine.api.engine", "from langchain_gemma_jax import config, errors\nimport jax") == []


def test_a_module_without_a_room_is_seen():
    with pytest.raises(AssertionError, match="in no room"):
        climbs("utils", "")
    with pytest.raises(AssertionError, match="a room that ROOMS does not know"):
        climbs("engine.cellar.coal", "")


def test_what_is_private_is_seen():
    assert strangers("chat.calling.call", "from langchain_gemma_jax.engine.base.metrics import _lock") != []
    assert strangers("chat.calling.call", "from langchain_gemma_jax.models._parts import x") != []
    assert strangers("models.load", "from langchain_gemma_jax.models._parts import x") == []


def test_circles_are_seen_also_those_for_types_alone():
    way = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from langchain_gemma_jax.{} import x"
    one, other = "engine.base.guards", "engine.base.metrics"
    assert circles({one: way.format(other), other: way.format(one)}) != []
    assert circles({one: way.format(other), other: ""}) == []


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
        "def f():\n    with threading.RLock():\n        yield 1",
    ],
)
def test_forbidden_constructs_are_seen(source):
    assert forbidden(source) != []


@pytest.mark.parametrize(
    "source",
    [
        "model.eval()",
        "load(x, trust_remote_code=code is not None)",
        "raise ValueError('never pickle, never eval()')",
        "with lock:\n    x = 1",
        "def f():\n    with self.clock.blocked():\n        yield 1",
    ],
)
def test_look_alikes_are_allowed(source):
    assert forbidden(source) == []


def test_a_name_that_means_two_things_is_seen():
    one, other = (
        "class A:\n    class B: ...\nclass _C: ...",
        "A: TypeAlias = int\nB: TypeAlias = str\n_C: TypeAlias = str",
    )
    assert twice_named({"a": one, "b": other, "c": one}) == {"A": ["a", "b", "c"]}
    assert twice_named({"a": one, "b": "B: int = 1\nA = 2"}) == {}


def test_large_and_divided_classes_are_seen():
    def class_of(methods: int, lines: int) -> str:
        return "class A:\n" + "    def f(self): ...\n" * methods + "    x = 1\n" * (lines - methods - 1)

    assert large_classes(class_of(MOST_METHODS, MOST_CLASS_LINES)) == []
    assert large_classes(class_of(MOST_METHODS + 1, 40)) == [f"A: {MOST_METHODS + 1} methods in 40 lines"]
    assert large_classes(class_of(1, MOST_CLASS_LINES + 1)) != []
    assert large_classes("class B:\n    x = 1\n    class A:\n" + "        async def f(self): ...\n" * 26) != []
    method = "class Part:\n    def f(self): ..."
    heir = "from engine.a import Part\nclass Whole(Part):\n    def g(self): ..."
    assert divided_classes({"engine.a": method, "engine.b": heir}) == ["engine.b.Whole inherits from engine.a.Part"]
    assert divided_classes({"engine.a": method, "engine.b": heir.replace("(Part)", "(a.Part[int])")}) != []
    assert divided_classes({"engine.a": f"{method}\n{heir}"}) == [], "both can be read in one file"
    assert divided_classes({"engine.a": "class Part:\n    x: int = 0", "engine.b": heir}) == []


def test_riddles_are_seen():
    for opening in RIDDLES:
        for summary in (f"{opening} is not said.", f"{opening}: what?", f"\\n    {opening.lower()} of a model."):
            for place in (
                '"""{}"""',
                'class A:\n    """{}"""',
                'def f():\n    """{}\n\n    More."""',
                'class A:\n    async def f(self):\n        """{}"""',
                'def f():\n    def g():\n        """{}"""',
                'class A:\n    size: int = 1\n    """{}"""',
                'SIZE = 1\n"""{}"""',
            ):
                assert len(riddles(place.format(summary))) == 1, (place, summary)
    assert len(riddles('"""They came back."""\nclass A:\n    """It."""\n    def f(self):\n        """None."""')) == 3


def test_summaries_with_a_subject_are_allowed():
    for summary in (
        "Return what it found.\n\n    It may be empty.",
        "Return True if the engine's thread runs.",
        "Facts that a caller needs.",
        "Items of a list.",
        "In-flight dispatches, oldest first.",
        "Some tokens.",
        "Once a model is there, tell everybody.",
        "The samest of names.",
        "Within a budget, all models' conversations.",
    ):
        assert riddles(f'"""{summary}"""') == [], summary
    assert riddles('def f():\n    print("It is no docstring here.")\n    return "It"\n# It is a comment.') == []


def test_empty_names_are_seen():
    for source in (
        "told = 1", "def f(told): ...", "def f(*_told): ...", "def told(): ...", "class Told: ...", "self._told = 1",
        "class A:\n    told: int = 1", "for told in x: ...", "import a as told",
    ):  # fmt: skip
        assert [name.lower() for name in empty_names(source)] == ["told"], source
    assert empty_names("untold = 1\nx.told()\nf(told=1)\nprint('told')") == []


def test_questions_are_seen():
    for opening in QUESTIONS:
        for summary in (f"{opening} the engine's thread runs.", f"``{opening.lower()}``: a name.", f"{opening}: this."):
            for place in (
                '"""{}"""',
                'class A:\n    """{}\n\n    More."""',
                'class A:\n    size: int = 1\n    """{}"""',
            ):
                assert questions(place.format(summary)) == [summary], (place, summary)
    for summary in (
        "Whole numbers.",
        "Howitzers.",
        "Return what it found.",
        "When-imported hooks.",
        "Whitespace. What?",
    ):
        assert questions(f'"""{summary}\n\nWhat it does."""') == [], summary
    assert questions('def f():\n    print("What is it?")\n    return "How"\n# Why is a comment.') == []


def test_british_spelling_is_seen_in_names_and_in_prose():
    assert british("_is_quantised(x)  # Colours, UNQUANTISED") == ["_is_quantised", "Colours", "UNQUANTISED"]
    assert british("organism, optimistic, a specialist, aria-labelledby, quantized, color") == []


@pytest.mark.parametrize("source", ["os.environ['X']", "os.getenv('X')", "from os import environ"])
def test_reading_the_environment_is_seen(source):
    assert reads_environment(source)


def test_nothing_outside_imports_training():
    root = PACKAGE.parent
    folders = ("langchain_gemma_jax", "benchmarks", "examples", "scripts", "tests")
    files = {path: path.read_text() for folder in folders for path in (root / folder).rglob("*.py")}
    assert len(files) > 300
    named = {path: text for path, text in files.items() if "training" in text}
    assert len(named) > 5
    found = [
        path for path, text in named.items() if any(name.partition(".")[0] == "training" for name in imports(text))
    ]
    assert found == []
    assert "training" in {name.partition(".")[0] for name in imports((root / "training" / "__main__.py").read_text())}


def named(source: str) -> set[str]:
    """Every name that a file gives to something, at any depth."""
    found = set()
    for node in nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found


def empty_names(source: str) -> list[str]:
    """Return the names that a file binds and that are in ``EMPTY_NAMES``."""
    found = []
    for node in nodes(source):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.append(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.append(name)
            case ast.alias(asname=str(name)):
                found.append(name)
    return [name.lstrip("_") for name in found if name.lstrip("_").lower() in EMPTY_NAMES]


def missing(sources: dict[str, str]) -> list[str]:
    """Imports from one file of a name that another one does not have."""
    found = []
    for file, source in sources.items():
        for node in nodes(source):
            if isinstance(node, ast.ImportFrom) and (known := sources.get(node.module or "")) is not None:
                lacks = {alias.name for alias in node.names} - named(known) - {"*"}
                modules_of_it = {each.rpartition(".")[2] for each in sources if each.startswith(f"{node.module}.")}
                found += [f"{file}: {node.module}.{name}" for name in sorted(lacks - modules_of_it)]
    return found


def test_what_tests_import_from_each_other_exists():
    """Mypy does not read tests, and those that need another library import only where it is installed."""
    root = PACKAGE.parent
    files = [path for folder in ("tests", "training") for path in (root / folder).rglob("*.py")]
    sources = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path.read_text()
        for path in files
    }
    assert len(sources) > 300
    assert missing(sources) == []


def test_missing_names_are_seen():
    there = {"tests.a": "A = 1\ndef b(): ...\nclass C: ...\nimport d.e", "tests.f": "", "tests.f.g": ""}
    assert missing(there | {"tests.h": "from tests.a import A, b, C, d\nfrom tests.f import g"}) == []
    assert missing(there | {"tests.h": "def x():\n    from tests.a import B, b"}) == ["tests.h: tests.a.B"]


if __name__ == "__main__":
    sys.stdout.write(
        "\n".join(["Grown, to be looked at again:", *advice()]) + "\n" if advice() else "Nothing has grown.\n"
    )
