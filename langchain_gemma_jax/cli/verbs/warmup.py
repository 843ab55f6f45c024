"""``gemma-jax warmup``: compile all programs of a model in advance, and keep an agent's prompt, for later processes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_gemma_jax.cli.terminal.arguments import Verbs, given_settings, verb
from langchain_gemma_jax.cli.terminal.output import say
from langchain_gemma_jax.errors import InputError

if TYPE_CHECKING:
    from langchain_gemma_jax.cli.tools.toolbox import Toolbox
    from langchain_gemma_jax.engine.api.engine import Engine

PREFIXES = "8GB"  # of disk for prefixes, unless the command says how much


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(
        verbs,
        "warmup",
        "compile a model's programs in advance, and read an agent's prompt into the prefix store",
        "gemma-jax warmup google/gemma-3-1b-it --max-context 8192 --tools my_tools.py --system prompt.txt",
    )
    parser.add_argument("model", help="a folder, a model's id on the Hugging Face Hub, or an embedded one: sprout-s")
    parser.take_settings("max_context", "dtype", "weights", "activations", "cache_dtype", "devices", "drafter")
    parser.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file whose functions are tools: their declarations are read, and kept in the prefix store; may "
        "be given more than once",
    )
    parser.add_argument(
        "--mcp", action="append", default=[], metavar="COMMAND", help="a command that starts an MCP server with tools"
    )
    parser.add_argument(
        "--system", metavar="FILE", help="a file with the system prompt, which is kept in the prefix store too"
    )
    parser.add_argument("--prefix-store", metavar="SIZE", help=f"the size of the prefix store; by default {PREFIXES}")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from langchain_gemma_jax import configure, engine

    how = given_settings(options)
    max_context = how.pop("max_context", None)
    system = None if options.system is None else _text_of(Path(options.system))
    keeps = bool(options.tools or options.mcp or system)
    if keeps:
        configure(prefix_store=options.prefix_store or PREFIXES)
    elif options.prefix_store is not None:
        raise InputError("--prefix-store: expected --tools, --mcp or --system too, which say what is kept; found none.")
    served = engine().load(options.model, **how)
    say(str(engine().warmup(served, max_context=max_context)))
    if keeps:
        from langchain_gemma_jax.cli.tools.toolbox import Toolbox

        with Toolbox(options.tools, options.mcp) as toolbox:
            _keep(engine(), options.model, how, system, toolbox)
    return 0


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--system: expected a file with a text in UTF-8, found {str(path)!r}: {error}") from error


def _keep(running: Engine, model: str, how: dict[str, Any], system: str | None, toolbox: Toolbox) -> None:
    """Have the model read the prompt once, and wait until it is on the disk."""
    from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

    from langchain_gemma_jax import ChatGemmaJax

    llm = ChatGemmaJax(model=model, max_tokens=1, **how)
    asked: list[BaseMessage] = [] if system is None else [SystemMessage(system)]
    (llm.bind_tools(toolbox.bound) if toolbox.bound else llm).invoke([*asked, HumanMessage("Hello")])
    running.close()  # which writes what is not on the disk yet
    report = running.report()
    what = " and ".join([f"{len(toolbox.names)} tools"] * bool(toolbox.names) + ["the system prompt"] * bool(system))
    if report.prefixes_written or report.prefixes_read:
        where = f"{report.prefix_bytes_written / 2**20:.1f} MiB written" if report.prefixes_written else "as before"
        say(f"{what} are kept for processes with configure(prefix_store=...): {where}.")
    else:
        say(f"{what} are not kept: reading them again is faster here than fetching them from the disk.")
