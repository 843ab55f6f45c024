"""Every module of the package has a test file, or is in a table that says which one tests it, and why.

A module ``x`` is tested by a file ``test_x.py``, wherever in ``tests/``; where several modules are called ``x``, by one
that imports it, or that lies in the folder which mirrors its own. What has no function in it, such as a module of names
or of plain values, has nothing to test. The few that are tested by other names are in ``ELSEWHERE``.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "langchain_gemma_jax"

# The end of a module's name, as much of it as no other module ends with -> the names of the tests that run it, without
# "test_", and what the module is to them.
ELSEWHERE: dict[str, tuple[str, str]] = {
    "answer_parts": ("answer_forms messages_out protocol_events", "plain values between the engine and messages"),
    "history.history": ("generated_ids event_reader", "a conversation with its digests"),
    "served_model": ("chat_model event_reader", "a call's model: loaded, kept, submitted to"),
    "recommended": ("options event_reader", "what a checkpoint's file recommends"),
    "settings.checks": ("table options", "the checks of the table: seen in what each setting refuses"),
    "pool_arrays": ("kv_holdings page_door", "the pool, and its tables: seen in what conversations hold"),
    "taken": ("runner faults", "the tokens of a dispatch, accepted"),
    "gemma.drafter": ("drafters mtp_drafts", "what it guesses, beside transformers' own drafts and in the engine"),
    "code_tables": ("block_formats products", "rows of the table of formats: every block beside the gguf package"),
    "few_bits": ("block_formats products", "the same of formats with one to three bits"),
    "grid_blocks": ("grids block_formats products", "the same of formats whose codes are rows of a grid"),
    "unpacking": ("block_formats blocks", "the steps that these formats are made of"),
    "answering.outcome": (
        "deferred_tools answer_metadata",
        "a call that is over: seen in what answers say of themselves",
    ),
    "route_decision": ("route_step", "a plain value, and how a message has it"),
    "answerer": (
        "chat_model remote_model",
        "the seam between the chat model and two engines: one set of tests for both",
    ),
    "embedding_calls": ("embeddings embeddings_api", "one call for vectors, from its texts to them"),
    "text_vectors": (
        "embeddings text_vector",
        "batches of texts on the device: seen in vectors, cancelled tasks, damage",
    ),
    "client.exchange": ("remote_model sessions running", "requests and answers, and how a server is lost"),
    "http.exchange": (
        "app bodies connections",
        "one request and its answer: seen from outside, by clients that mean harm",
    ),
    "native": ("remote_model app", "our own client asks it, and is asked for it"),
    "calling.continued": ("llms text_forms", "texts that are gone on with, here and by a server"),
    "continued_text": ("completions generate", "a text that is gone on with: whole and in pieces, by both APIs"),
    "ollama.notes": ("options chat embed", "what an answer tells of itself: seen in its field"),
    "ollama.asking": ("chat generate embed clients", "fields that the paths share, as each of them has them"),
    "ollama.answers": ("chat generate clients", "the form of answers, whole and by lines, as each path has it"),
    "warning_forms": ("remote_model", "a server's warning, as its client gets it"),
    "disk_arrays": (
        "disk_store",
        "a conversation as a file's arrays: whatever was wrong with them would change answers",
    ),
    "work_in_hand": ("owner failures", "what the parts of the loop share: each of their tests makes one"),
    "api.adapters": ("adapter_slots", "adapters read once, and what may stand beside a model"),
    "program_key": ("adapter_slots signatures", "keys of programs, and of those for rows with adapters"),
    "row_programs": ("adapter_slots", "which programs rows run: seen in what was compiled, and in answers"),
    "adapters.adapter": ("open_adapter adapter_slots", "what files of adapters become, checked and padded"),
    "peft_config": ("open_adapter adapters", "scales, and refusals by name"),
    "peft_folder": ("open_adapter adapters", "one kind of an adapter's files"),
    "packed.scaled": ("from_file device_mesh", "files with factors give the scores of dense ones, and are divided"),
    "gguf_adapter": ("open_adapter", "the other kind"),
    "row_knobs": ("sampling determinism", "rows' settings on the device: each row gets its own, in any company"),
    "other_hosts": ("hosts leader", "protocols, which the hosts of a group follow"),
    "follower": ("hosts leader", "a process of its own that follows: seen in answers and in ends"),
    "media_files": ("siglip gemma4_tower unified conformer", "tensors by the names that checkpoints have"),
    "mmproj_config": ("mmproj_file", "metadata as a configuration: wrong ones are wrong soft tokens, or errors there"),
    "gemma_architecture": ("forward weights engine", "hands over what these modules do"),
    "gemma_facts": ("forward model_estimate", "what an architecture answers, seen in what is computed and reserved"),
    "teamwork": ("divided_gemma", "what a device is told by others, and costs nothing alone"),
    "hub_stop": ("download model_loading", "ends a download, of a server that drips"),
    "opened": ("load unchanged", "the interface of open files, and the plan of a model"),
    "torchax.reading": ("torch_model", "weights of torch's formats, where torch is"),
}


def modules() -> list[str]:
    """The names below ``langchain_gemma_jax`` of modules that do something; rooms' own files only import others."""
    return sorted(
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
        if path.name != "__init__.py" and does_something(path.read_text())
    )


def does_something(source: str) -> bool:
    """Return True if there is a function in a module."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) for node in ast.walk(ast.parse(source))
    )


def by_name() -> dict[str, list[set[str]]]:
    """For each test's name, without ``test_``, what the files of that name import from the package or mirror of it."""
    found: dict[str, list[set[str]]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.stem.removeprefix("test_")
        mirrored = ".".join([*path.relative_to(TESTS).parts[:-1], name])
        found.setdefault(name, []).append({mirrored, *imported(path.read_text())})
    return found


def imported(source: str) -> Iterator[str]:
    """The names below ``langchain_gemma_jax`` that a file imports: ``a`` and ``a.b`` for ``from a import b``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name.partition(".")[2] for name in names if name.partition(".")[0] == PACKAGE.name)


def ends_with(module: str, end: str) -> bool:
    return f".{module}".endswith(f".{end}")


def untested(found: list[str], known: Mapping[str, list[set[str]]], table: Mapping[str, tuple[str, str]]) -> list[str]:
    """The modules that have no test of their name and are not in the table."""
    called = Counter(last(module) for module in found)
    left = []
    for module in found:
        own = known.get(last(module), [])
        tested = any(module in names for names in own) if called[last(module)] > 1 else bool(own)
        if not tested and not any(ends_with(module, end) for end in table):
            left.append(module)
    return left


def last(module: str) -> str:
    return module.rpartition(".")[2].strip("_")


def wrong(found: list[str], known: Mapping[str, list[set[str]]], table: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the mistakes in the table."""
    problems = []
    for end, (where, why) in table.items():
        meant = [module for module in found if ends_with(module, end)]
        if len(meant) != 1:
            problems.append(f"{end}: {meant or 'no module'} is called so")
        elif meant[0] not in untested(found, known, {}):
            problems.append(f"{end}: it has a test of its own name, so nothing need be said")
        if missing := [name for name in where.split() if name not in known]:
            problems.append(f"{end}: no test is called {missing}")
        if not where.split() or not why.strip():
            problems.append(f"{end}: say which test runs it, and why it has none of its own")
    return problems


def test_every_module_has_a_test_or_a_reason():
    left = untested(modules(), by_name(), ELSEWHERE)
    assert left == [], "write a test of that name which imports the module, or say in ELSEWHERE what tests it"


def test_what_the_table_says_is_so():
    assert wrong(modules(), by_name(), ELSEWHERE) == []


# And the rules themselves, shown something bad.

FOUND = ["a.inbox", "b.inbox", "a._check", "a.seen"]
KNOWN = {"inbox": [{"a.inbox", "a.inbox.Inbox"}], "check": [set()], "story": [set()]}


def test_a_module_without_a_test_is_seen():
    assert untested(FOUND, KNOWN, {}) == ["b.inbox", "a.seen"], "of two modules of one name, the one that is imported"
    assert untested(FOUND, KNOWN, {"b.inbox": ("story", "why"), "seen": ("story", "why")}) == []


@pytest.mark.parametrize(
    ("end", "where", "why", "said"),
    [
        ("gone", "story", "why", "no module"),
        ("inbox", "story", "why", "['a.inbox', 'b.inbox'] is called so"),
        ("a.inbox", "story", "why", "of its own name"),
        ("seen", "story gone", "why", "no test is called ['gone']"),
        ("seen", "", "why", "say which test"),
        ("seen", "story", " ", "say which test"),
    ],
)
def test_a_table_that_is_not_true_is_seen(end, where, why, said):
    (problem,) = wrong(FOUND, KNOWN, {end: (where, why)})
    assert said in problem


def test_imports_are_found_wherever_they_are():
    inside = "def f():\n    from langchain_gemma_jax.c import d\n    from other import e"
    source = f"import langchain_gemma_jax.a.b\n{inside}"
    assert set(imported(source)) == {"a.b", "c", "c.d"}


def test_a_module_of_plain_values_does_nothing():
    assert not does_something("A = 1\n@dataclass\nclass B:\n    c: int = 0\n")
    assert does_something("class B:\n    def c(self): ...")
    assert does_something("A = lambda: 1")
