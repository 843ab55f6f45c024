"""Profiles for deepagents: two entry points, which it calls before it makes a model or an agent.

create_deep_agent(model="gemma_jax:google/gemma-3-4b-it")
"""

from __future__ import annotations

from langchain_gemma_jax.provider import PROVIDER, register

SUFFIX = (
    "Work in small steps. Call one tool at a time, with the arguments that its description names, and read its result "
    "before you go on. Do not repeat a call whose result you have. When you know the answer, give it in words."
)
# Descriptions of the file tools for small models. deepagents' own are several thousand tokens.
DESCRIPTIONS = {
    "ls": "Lists the files in a folder. path: an absolute path, such as /.",
    "read_file": "Reads a file, with line numbers. file_path: an absolute path. offset, limit: which lines.",
    "write_file": "Writes a new file. file_path: an absolute path. content: its whole text.",
    "edit_file": "Replaces a text in a file by another one. old_string has to be there exactly once, unless "
    "replace_all is true. Read the file first.",
}
EXCLUDED = frozenset({"execute", "glob", "grep", "write_todos"})


def register_provider() -> None:
    """Register the provider, so that ``create_deep_agent(model="gemma_jax:...")`` needs no import of the package."""
    register()


def register_harness() -> None:
    """Register a harness for local models: few tools, short descriptions, and no subagent."""
    from deepagents import (  # type: ignore[import-not-found, unused-ignore]
        GeneralPurposeSubagentProfile,
        HarnessProfile,
        register_harness_profile,
    )

    register_harness_profile(
        PROVIDER,
        HarnessProfile(
            system_prompt_suffix=SUFFIX,
            tool_description_overrides=DESCRIPTIONS,
            excluded_tools=EXCLUDED,
            general_purpose_subagent=GeneralPurposeSubagentProfile(enabled=False),
        ),
    )
