"""Every module of the package has a test file, or is in a table that says which one tests it, and why.

A module ``x`` is tested by a file ``test_x.py``, wherever in ``tests/``; where several modules are called ``x``, by one
that imports it. Where a behaviour needs several modules, its test is one story under the behaviour's name: these
modules are in ``ELSEWHERE``.
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
    "everywhere": ("folder command", "the folders that the command looks at"),
    "answer": (
        "messages_out cut_off structured_output",
        "what the events of one answer add up to, however it was asked for",
    ),
    "answer_parts": ("answer_forms messages_out protocol_events", "plain values between the engine and messages"),
    "history.history": ("generated_ids once", "a conversation with its digests"),
    "served_model": ("chat_model once routing", "a call's model: loaded, kept, submitted to"),
    "recommended": ("options once", "what a checkpoint's file recommends"),
    "taken": ("runner faults", "the tokens of a dispatch, accepted"),
    "answer_metadata": ("messages_out chat_model", "a part of each message"),
    "event_reader": ("messages_out once cut_off", "ids in, events out"),
    "outcome": ("cut_off routing", "how an answer ended, in the words of whoever asked"),
    "answer_format": ("structured_output cut_off", "what with_structured_output makes of a schema"),
    "answer_grammar": ("tool_choice structured_output", "what an answer is held to, seen in answers"),
    "model_profile": ("chat_model routing", "one property of the chat model"),
    "route_decision": ("routing", "a plain value"),
    "asking.schemas": ("structured_output tool_choice", "classes and functions as JSON Schemas"),
    "answerer": (
        "chat_model remote_model",
        "the seam between the chat model and whatever answers: two engines, one set of tests",
    ),
    "batch_concurrency": ("concurrency", "how many calls of a batch run together"),
    "call": ("chat_model cut_off timeout once", "one call from its messages to its message"),
    "ready_model": ("timeout routing chat_model", "the model that a call waits for"),
    "starting": ("timeout concurrency", "how a call begins, in threads and event loops"),
    "token_counting": ("chat_model", "get_num_tokens"),
    "content_blocks": ("messages_in", "what a message may hold"),
    "media_in": ("media", "what conversations' images become, seen in what a model reads"),
    "route_step": ("routing", "which size takes a step"),
    "call_shapes": ("turn_grammar", "the parts of the grammar of a turn"),
    "output_events": ("native_parser fence_parser fuzz", "plain values, and how they join"),
    "dialect": ("goldens injection round_trip", "what all formats do: each is held to its template"),
    "declarations": ("goldens declared_schema", "tools as the published templates write them"),
    "native_call_reader": ("native_parser fuzz", "the part of the parser that is inside a call"),
    "notation": ("round_trip gemma4 function_gemma", "how a format spells its values"),
    "gemma_facts": ("forward weights engine", "what an architecture answers, seen in what is computed"),
    "teamwork": ("device_mesh", "what a device is told by others, and costs nothing alone"),
    "score_share": ("mesh_picks sampling", "what a device is told of others' scores, and costs nothing alone"),
    "divided_gemma": ("device_mesh mesh_talk", "the forward pass of each device"),
    "hosts.follower": ("hosts", "a process that follows, seen in answers and in ends"),
    "hosts.frames": ("host_lines", "halves of frames, large ones, and silence"),
    "hosts.group": ("hosts host_lines", "how processes come together, and end"),
    "hosts.leader": ("hosts", "what the others are told, seen in answers"),
    "hosts.line": ("host_lines", "frames between two processes, forged and cut"),
    "hosts.names": ("host_lines hosts", "what arrays are called in all processes"),
    "shared_programs": ("hosts", "what has to be the same everywhere"),
    "other_hosts": ("hosts", "the engine's side of several processes"),
    "group_options": ("hosts serve", "which process of several this one is"),
    "model_loading": ("model_api loads_under_way", "what load does, with what waits for it"),
    "request_making": ("engine generation", "what submit does: checks, and the request"),
    "runner_factory": ("model_api two_devices", "what a model that is in memory runs with"),
    "code_report": ("guard failure_modes", "what guards say of code"),
    "entrances": ("guard", "JAX's entrances, watched by guards"),
    "collector": ("metrics canaries", "metrics as a registry collects them"),
    "families": ("metrics files", "metrics as plain values"),
    "vllm_names": ("metrics", "a table"),
    "program_key": ("ladders", "a name for tuples of numbers"),
    "disk_arrays": ("prefixes_kept", "a conversation as a file's arrays, and back"),
    "disk_store": ("prefixes_kept", "conversations that go to the disk and come back"),
    "fingerprint": ("library packed_model", "programs' names: what has to change them, and what not"),
    "dispatching": ("concurrency kv_store faults", "the loop's part that hands work to the device"),
    "failures": ("faults nan", "the loop's part that ends what failed, and nothing else"),
    "work_in_hand": ("owner faults", "what the parts of the loop share"),
    "resident": ("prefix_index kv_eviction", "plain values that the index keeps"),
    "known_models": ("model_api", "which models an engine knows, in memory or not"),
    "ledger_entry": ("ledger status_file", "a line of the books"),
    "model_evictor": ("model_api residents_stress", "makes room: seen in what stays in memory"),
    "model_status": ("status_file model_api", "what people are shown of a model"),
    "embedding_calls": ("embeddings", "one call for vectors, from its texts to them"),
    "text_vectors": ("embeddings", "batches of texts on the device: seen in vectors, in cancelled tasks, in damage"),
    "in_flight": ("runner concurrency", "dispatches whose tokens are on their way"),
    "row_knobs": ("sampling runner determinism", "rows' settings on the device: each row gets its own"),
    "errors": ("exports error_copies error_names", "classes: the tree, their copies, what others raise"),
    "json_value": ("messages", "a name for a type"),
    "lark": (
        "model_grammars hostile_schemas turn_grammar",
        "grammars as llguidance reads them: only its answer counts",
    ),
    "nodes": ("turn_grammar json_grammar", "what grammars are made of"),
    "grammar.reading": ("pattern_text number_patterns", "llguidance's own reading, which tests of patterns ask"),
    "formats": ("json_grammar public_suite", "a format's strings, as validators have them"),
    "schema_arrays": (
        "json_grammar hostile_schemas public_suite",
        "a part of JSON Schema, seen in what is let through",
    ),
    "schema_facts": ("json_grammar hostile_schemas public_suite", "a part of JSON Schema, seen in what is let through"),
    "schema_objects": (
        "json_grammar hostile_schemas public_suite",
        "a part of JSON Schema, seen in what is let through",
    ),
    "schema_scalars": (
        "json_grammar hostile_schemas public_suite",
        "a part of JSON Schema, seen in what is let through",
    ),
    "schema.writing": ("json_grammar turn_grammar", "JSON as a model writes it, and natively"),
    "terminals": ("pattern_text turn_grammar", "patterns of text, read by llguidance"),
    "grammar.vocabulary": ("model_grammars request_constraint", "a tokenizer as llguidance knows it"),
    "config_fields": ("hf_config", "the fields of a config.json"),
    "gemma_architecture": ("forward weights engine", "hands over what these modules do"),
    "seams.block_forms": ("block_formats choose_forms", "a plain value"),
    "chat_format": ("header load read_template", "a plain value"),
    "how_to_load": ("options load", "a plain value"),
    "tensor_source": ("place slices", "stored tensors, whole and cut"),
    "seams.params": ("model", "the tree of a model's arrays"),
    "media_encoder": ("soft_tokens media", "the parts of every tower"),
    "media_support": ("soft_tokens media", "what a model can take, seen where it is taken"),
    "check_asked": ("load versions", "what is refused before a file is looked at"),
    "open_model": ("load ollama", "which kind of files a source has"),
    "opened": ("load", "the steps between open files and a model"),
    "opened_gemma": ("load unchanged quantise", "the same for a Gemma: first loads, later ones"),
    "opened_torch": ("torch_engine", "needs torch"),
    "plan_model": ("load counts", "where a model goes, seen in its arrays"),
    "torchax.reading": ("torch_engine", "needs torch"),
    "encoders.mmproj_file": ("mmproj_files", "what lies beside a model, of another one, or damaged"),
    "hub_errors": ("download", "what is said of a download that fails"),
    "hub_request": ("download", "what is asked of the Hub"),
    "hub_stop": ("download loads_under_way", "ends a download, of a server that drips"),
    "asked_storage": ("activations", "what packed weights are multiplied by, asked for or not"),
    "random_params": ("weights", "weights for tests and benchmarks"),
    "recipe": ("probe unchanged", "a plain value"),
    "hf_json": ("content components decode", "one of the tokenizers that all tests of tokenizers are run with"),
    "sentencepiece": (
        "content sentencepiece_damaged decode",
        "one of the tokenizers that all tests of tokenizers are run with",
    ),
    "interface": ("content decode", "what every tokenizer does"),
    "tokenizer.library": ("load", "errors of two libraries as ours"),
    "tokenizer.vocabulary": ("content", "which of a vocabulary's words are text"),
    "dialects.choose": ("choose", "its test asks by the room's door"),
    "recipes.choose": ("choose", "its test asks by the room's door"),
    "gguf_file_names": ("gguf_files hub_listing", "which files of a folder or a repository are one model"),
    "open_file": ("safetensors header", "how both formats of files are read"),
    "torchax.asked": ("versions", "options that mean nothing there"),
    "torchax.libraries": ("torch_engine versions", "the door to torch, which is in an environment of its own"),
    "doors.classify": ("torch_classify", "needs torch"),
    "meta_module": ("torch_engine", "needs torch"),
    "torch_model": ("torch_engine", "needs torch"),
    "traced_pass": ("torch_engine", "needs torch"),
    "loading.find": ("load ollama download", "where a source's files are"),
    "generation_defaults": ("load", "one small file of a folder"),
    "marked_parser": ("call_forms", "the parser of each family's form"),
    "template_dialect": ("call_forms torch_chat", "one format for all templates"),
    "fenced_words": ("gemma goldens", "a part of Gemma's format"),
    "gguf.fields": ("header from_gguf", "look-ups in the metadata, with their errors"),
    "gguf_config": ("header gguf_model", "a file's metadata as a configuration"),
    "gguf_names": ("numbers gguf_model", "a table: wrong names give wrong numbers"),
    "gguf_source": ("header numbers", "a file's tensors, damaged ones too"),
    "gguf_tokenizer": ("from_gguf", "a file's tokenizer"),
    "local_files": ("ollama", "files of other programs on this machine"),
    "opening": ("header gguf_model numbers", "a whole file, opened"),
    "blocks": ("block_formats quantise numbers", "products of packed matrices, of each kind"),
    "from_file": ("numbers", "matrices as a file has them"),
    "splitting": ("block_formats", "blocks of every kind, taken apart"),
    "targets": ("products", "names"),
    "verbs.cache": ("command", "a verb of the command"),
    "verbs.models": ("command", "a verb of the command"),
    "verbs.warmup": ("command", "a verb of the command"),
    "verbs.top": ("command", "a verb of the command"),
    "verbs.completion": ("command", "a verb of the command"),
    "settings.checks": ("table", "the checks of settings, by their names"),
    "signals": ("policy routing", "plain values"),
    "cli.__main__": ("verbs", "one line, which starts the command"),
    "findings": ("verbs", "what the doctor found, as people read it"),
    "interruptible": ("interrupt", "what Ctrl-C stops"),
    "self_test": ("doctor", "the doctor's own try"),
    "terminal.arguments": ("verbs", "command lines, and what is said of wrong ones"),
    "terminal.output": ("verbs", "text for terminals, pipes and files"),
    "mcp_server": ("verbs", "tools of a server, in a chat"),
    "python_file": ("verbs", "tools of a file, in a chat"),
    "toolbox": ("verbs", "tools by name, in a chat"),
    "verbs.compare": ("verbs command", "a verb of the command"),
    "quantised_folder": ("compressed_tensors mobile", "which of the two kinds a folder is"),
    "verbs.bench": ("verbs", "a verb of the command"),
    "verbs.chat": ("verbs", "a verb of the command"),
    "verbs.run": ("verbs", "a verb of the command"),
    "raw_text": ("llms", "a completion model's one call"),
    "questions": ("decisions", "questions as a model reads them"),
    "label_scores": ("decisions", "what a decision model reads"),
    "live_answer": ("routing chat_model protocol_events", "how an answer is shown while it comes"),
    "chat_models": ("imports", "the name under which the ecosystem looks for the chat model"),
    "deepagents_profiles": ("provider", "what deepagents calls"),
    "model_errors": ("exceptions", "LangChain's bases of our errors"),
    "known_ids": ("new_user", "ids that a wrong name may mean"),
    "results": ("request nan concurrency", "the loop's part that looks at tokens"),
    "testing.costs": ("watch", "what a test cost"),
    "asking.tracing": ("chat_model", "what tracing knows of a call"),
    "http.exchange": ("app connections", "bodies within bounds, clients that leave"),
    "warning_forms": ("remote_model", "warnings that come with an answer"),
    "warning_sink": ("guards base_models remote_model", "the receiver of a warning"),
    "client.exchange": ("remote_model running", "requests and answers, and how they are lost"),
    "apis.caller": ("app", "who may ask what"),
    "apis.fields": ("chat_completions anthropic_answers responses app", "what is wrong with a request"),
    "apis.native": ("remote_model app", "what our own client asks, asked by it"),
    "anthropic_messages": ("anthropic_answers", "requests, by what is asked of the engine"),
    "chat_messages": ("chat_completions", "requests, by what is asked of the engine"),
    "openai_parts": ("chat_completions responses", "what both APIs do"),
    "response_items": ("responses", "requests, by what is asked of the engine"),
    "limits": ("connections app", "plain values, each of which is reached"),
    "open_calls": ("running connections", "calls that end with their server or their client"),
    "problems": ("app", "statuses, as clients see them"),
    "server.pages": ("app", "what is asked by GET"),
    "readiness": ("serve", "models made ready by a server that starts"),
    "siglip": ("soft_tokens", "a tower, held to transformers'"),
    "gemma4_tower": ("soft_tokens", "a tower, held to transformers'"),
    "conformer": ("soft_tokens", "an encoder, held to transformers'"),
    "spectrogram": ("soft_tokens", "sounds as transformers prepares them, seen in their soft tokens"),
    "unified": ("soft_tokens", "projections, held to transformers'"),
    "gemma3_pictures": ("soft_tokens", "pictures as transformers prepares them"),
    "gemma4_rules": ("soft_tokens", "pictures as transformers prepares them"),
    "media_config": ("soft_tokens", "configurations of models that see"),
    "model_media": ("media soft_tokens", "weights that come with the first picture"),
    "mmproj_config": ("mmproj_files", "metadata that describe encoders"),
    "mmproj_names": ("mmproj_files", "tensors by the names of another program"),
    "mmproj_inputs": ("mmproj_files", "what profiles say of a file"),
    "media_files": ("soft_tokens", "tensors by the names that checkpoints have"),
    "media_encoding": ("media", "encoders in the engine"),
    "when_imported": ("install", "what is done when a module is imported"),
}


def modules() -> list[str]:
    """The names below ``langchain_gemma_jax`` of all modules; rooms' own files import others and hold nothing."""
    return sorted(
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
        if path.name != "__init__.py"
    )


def by_name() -> dict[str, list[set[str]]]:
    """For each test's name, without ``test_``, what the files of that name import from the package."""
    found: dict[str, list[set[str]]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        found.setdefault(path.stem.removeprefix("test_"), []).append(set(imported(path.read_text())))
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
    """What is wrong with the table."""
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
