"""The table of docs/langchain.md: what was run, and by which test. Filled by ``scripts/ecosystem``.

python -m tests.ecosystem.table build/ecosystem.xml docs/langchain.md
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

BEGIN, END = "<!-- ecosystem: written by scripts/ecosystem -->", "<!-- ecosystem: end -->"

MIDDLEWARE = "test_shipped_middleware"
# What works -> the file of its test, and the test.
ROWS: dict[str, tuple[str, str]] = {
    "`ModelRetryMiddleware`, `ModelFallbackMiddleware`": (MIDDLEWARE, "test_model_retry_and_fallback"),
    "`SummarizationMiddleware`": (MIDDLEWARE, "test_summaries_make_room"),
    "`ContextEditingMiddleware`": (MIDDLEWARE, "test_old_results_make_room"),
    "`HumanInTheLoopMiddleware`": (MIDDLEWARE, "test_human_in_the_loop"),
    "`TodoListMiddleware`": (MIDDLEWARE, "test_todo_list"),
    "`ModelCallLimitMiddleware`, `ToolCallLimitMiddleware`": (MIDDLEWARE, "test_limits_of_calls"),
    "`ToolErrorMiddleware`, `ToolRetryMiddleware`": (MIDDLEWARE, "test_errors_of_tools"),
    "`PIIMiddleware`": (MIDDLEWARE, "test_personal_information"),
    "`LLMToolSelectorMiddleware`": (MIDDLEWARE, "test_tools_are_selected_by_a_model"),
    "`LLMToolEmulator`": (MIDDLEWARE, "test_tools_are_emulated_by_a_model"),
    "`FilesystemFileSearchMiddleware`, `ShellToolMiddleware`": (MIDDLEWARE, "test_files_and_a_shell"),
    "`ModelRouterMiddleware`": (MIDDLEWARE, "test_a_decision_model_routes"),
    "`AutoModeMiddleware`": (MIDDLEWARE, "test_a_decision_model_guards_calls"),
    "`ModelRefusalMiddleware`": (MIDDLEWARE, "test_refusals_are_the_words_of_servers"),
    "`ProviderToolSearchMiddleware`: the search is the model's own": (
        MIDDLEWARE,
        "test_search_by_the_provider_is_ours",
    ),
    "LangGraph: checkpoints in memory": ("test_graphs", "test_a_conversation_is_kept_in_memory"),
    "LangGraph: checkpoints in SQLite": ("test_graphs", "test_a_conversation_is_kept_in_sqlite"),
    "LangGraph: checkpoints carry nothing of an engine": ("test_graphs", "test_checkpoints_carry_nothing_of_an_engine"),
    "LangGraph: interrupts": ("test_graphs", "test_an_interrupt_waits_for_a_person"),
    "LangGraph: parallel branches": ("test_graphs", "test_parallel_branches_share_the_engine"),
    "LangGraph: subgraphs, all modes of streaming": ("test_graphs", "test_a_graph_in_a_graph_streams_in_every_mode"),
    "langgraph-supervisor": ("test_partners", "test_a_supervisor_hands_work_on"),
    "langgraph-swarm": ("test_partners", "test_a_swarm_changes_hands"),
    "deepagents": ("test_partners", "test_a_deep_agent_works_with_files"),
    "deepagents: a context that is full": ("test_partners", "test_a_deep_agent_whose_context_is_full_goes_on"),
    "MCP adapters, a server by stdio": ("test_partners", "test_tools_of_an_mcp_server"),
    "retrieval": ("test_chains", "test_documents_are_found_and_read"),
    "composition of runnables": ("test_chains", "test_runnables_compose"),
    "history": ("test_chains", "test_a_history_is_kept"),
    "retries, fallbacks": ("test_chains", "test_retries_and_fallbacks_go_by_kinds"),
    "configurable fields and alternatives": ("test_chains", "test_settings_and_models_are_chosen_late"),
    "`batch_as_completed`": ("test_chains", "test_batches_come_as_they_are_ready"),
    "caches, callbacks": ("test_chains", "test_a_cache_and_callbacks"),
    "FastAPI: clients that leave": ("test_servers", "test_a_web_client_that_leaves_stops_the_work"),
    "uvicorn and gunicorn with several processes, preloaded": ("test_servers", "test_servers_with_several_processes"),
    "spawn, fork before first use, fork after it (refused)": ("test_servers", "test_processes_of_their_own"),
    "several event loops": ("test_servers", "test_many_event_loops"),
    "pytest-xdist": ("test_servers", "test_test_runners_on_all_cores"),
}


def outcomes(report: str) -> dict[tuple[str, str], list[str]]:
    """How each test ended, by its file and name: a list, as one may have several cases."""
    found: dict[tuple[str, str], list[str]] = {}
    for case in ET.fromstring(report).iter("testcase"):
        ends = {child.tag for child in case} & {"failure", "error", "skipped"}
        key = case.get("classname", "").rpartition(".")[2], case.get("name", "").partition("[")[0]
        found.setdefault(key, []).append(ends.pop() if ends else "passed")
    return found


def table(found: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """The table as Markdown."""
    lines = ["| what | | test |", "|---|---|---|"]
    for what, key in ROWS.items():
        ends = set(found.get(key, ["not run"]))
        mark = "✔" if ends == {"passed"} else ", ".join(sorted(ends - {"passed"}))
        lines.append(f"| {what} | {mark} | `{key[1]}` |")
    return "\n".join(lines)


def replaced(page: str, text: str) -> str:
    """The page with this in its place between the marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{behind}"


def main(*paths: str) -> int:
    """Write the table, of some reports and a page; of a test that is in several the last counts.

    The exit status says whether every row has its mark.
    """
    *reports, page = paths
    found: dict[tuple[str, str], list[str]] = {}
    for report in reports:
        found |= outcomes(Path(report).read_text())
    text = table(found)
    Path(page).write_text(replaced(Path(page).read_text(), text))
    sys.stdout.write(f"{text}\n")
    return int(text.count("✔") < len(ROWS))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
