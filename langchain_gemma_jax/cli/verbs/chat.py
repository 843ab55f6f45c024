"""``gemma-jax chat``: a conversation in the terminal, with tools."""

from __future__ import annotations

import argparse
import json
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_gemma_jax.cli.terminal.arguments import Parser, Verbs, given_settings, nearest, verb
from langchain_gemma_jax.cli.terminal.interruptible import Interruptible
from langchain_gemma_jax.cli.terminal.output import (
    GRAY,
    RED,
    colored,
    complain,
    fitted,
    interactive,
    printable,
    say,
    size,
)
from langchain_gemma_jax.config import SERVER_OFF, default_model, default_server
from langchain_gemma_jax.errors import GemmaJaxError, InputError
from langchain_gemma_jax.models.configuration.embedded import DEFAULT
from langchain_gemma_jax.models.loading.model_names import FORMS, check_name
from langchain_gemma_jax.routing.route import AUTO
from langchain_gemma_jax.wire.addresses import FORMS as ADDRESSES

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

    from langchain_gemma_jax.cli.tools.toolbox import Toolbox

NOTHING_SAID = (
    "expected something to say, found nothing on standard input: echo Hello | gemma-jax chat, or come with a terminal."
)
MOST_ROUNDS = 10  # rounds of calls of tools, for one question
COMMANDS = {
    "/help": "what can be said here",
    "/report": "what was compiled, copied, reused, and what it cost",
    "/tools": "the tools that the model may call",
    "/new": "begin a new conversation",
    "/save FILE": "write the conversation to a file, which --history continues",
    "/exit": "leave; so does the end of the input (Ctrl-D)",
}


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(
        verbs,
        "chat",
        "talk to a model in the terminal, with tools",
        "gemma-jax chat --tools my_tools.py --mcp 'python weather_server.py'",
    )
    parser.add_argument("word", nargs="?", metavar="MODEL", help=f"{FORMS}; the same as --model")
    add_model_options(parser)
    parser.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file whose functions are tools; may be given more than once",
    )
    parser.add_argument(
        "--mcp", action="append", default=[], metavar="COMMAND", help="a command that starts an MCP server"
    )
    parser.add_argument("--history", metavar="FILE", help="a file to continue a conversation from, and to keep it in")
    parser.set_defaults(run=_run)


def add_model_options(parser: Parser) -> None:
    """Add the options that all verbs which ask a model have: all of its settings, and who answers."""
    parser.add_argument("--model", help=f"{FORMS}; by default GEMMA_JAX_MODEL, or sprout-m")
    parser.add_argument("--system", help="a system prompt")
    parser.add_argument(
        "--server", metavar="ADDRESS", help=f"the engine that answers: {ADDRESSES}; by default GEMMA_JAX_SERVER, or off"
    )
    parser.take_settings_of("a model")


def named_model(word: str | None, options: argparse.Namespace) -> str | None:
    """Return the model that a word or the option names; None if neither does.

    Raises:
        InputError: they name different models.
    """
    if word is not None and options.model not in {None, word}:
        raise InputError(f"Expected one model, found two: {word!r}, and --model {options.model!r}. Leave one out.")
    return options.model if word is None else word


def chat_model(options: argparse.Namespace) -> Any:
    """Return the chat model that the options ask for."""
    if (options.server or default_server()) in {None, SERVER_OFF}:  # else the server checks the name
        named = options.model or default_model() or DEFAULT
        if named != AUTO or options.route is None:  # else the names are the route's
            check_name(named)
    from langchain_gemma_jax import ChatGemmaJax

    return ChatGemmaJax(model=options.model, server=options.server, **given_settings(options))


def _run(options: argparse.Namespace) -> int:
    options.model = named_model(options.word, options)
    ahead = _line_that_is_there()  # before slow imports
    if ahead == "":
        raise InputError(NOTHING_SAID)
    from langchain_gemma_jax.cli.tools.toolbox import Toolbox

    history = [] if options.history is None else read_history(Path(options.history))
    with Toolbox(options.tools, options.mcp) as toolbox:
        talk = Conversation(chat_model(options), toolbox, history, options.system)
        if interactive():
            with suppress(ImportError):
                import readline  # noqa: F401  input() edits lines with it
            say(f"{talk.name}. /help says what can be said here, Ctrl-C stops an answer, Ctrl-D ends.")
        _converse(talk, toolbox, options.history, ahead)
    return 0


def _line_that_is_there() -> str | None:
    """Return the first line of a pipe or a file; the empty string at its end; None if there is no line yet."""
    try:
        ready = not sys.stdin.isatty() and select.select([sys.stdin], [], [], 0)[0]
    except (OSError, ValueError):  # standard input has no file descriptor
        return None
    return sys.stdin.readline() if ready else None


def _converse(talk: Conversation, toolbox: Toolbox, history: str | None, ahead: str | None) -> None:
    """Answer one line after the other; ``ahead`` is the first one, if it was read already."""
    line = _next_line() if ahead is None else ahead.strip()
    if line is None and not interactive():
        raise InputError(NOTHING_SAID)
    while line is not None:
        try:
            if line.startswith("/"):
                if not _command(line, talk, toolbox):
                    return
            elif line:
                talk.ask(line)
                if history is not None:
                    write_history(Path(history), talk.messages)
        except KeyboardInterrupt:
            with suppress(KeyboardInterrupt):  # pressed twice
                say(f"\n{colored('(stopped)', GRAY)}")
        except GemmaJaxError as error:
            complain(str(error))
        line = _next_line()


def _next_line() -> str | None:
    """Return the next line of input; the empty string after Ctrl-C; None at the end."""
    try:
        return input("> " if interactive() else "").strip()
    except EOFError:
        if interactive():
            say()
        return None
    except KeyboardInterrupt:
        if not interactive():
            raise
        say("\nCtrl-D or /exit ends.")
        return ""


def _command(line: str, talk: Conversation, toolbox: Toolbox) -> bool:
    """Carry out a command of the chat. Return False to end the chat."""
    name, _, rest = line.partition(" ")
    if name in {"/exit", "/quit"}:
        return False
    if name == "/help":
        for each, text in COMMANDS.items():
            say(f"{each:12} {text}")
    elif name == "/report" and talk.asks_server:
        say("The engine is the server's: gemma-jax top shows what it does, and so does its page in a browser.")
    elif name == "/report":
        from langchain_gemma_jax import engine

        say(str(engine().report()))
    elif name == "/tools":
        say("\n".join(toolbox.names) or "There are none: gemma-jax chat --tools FILE")
    elif name == "/new":
        talk.begin_anew()
        say("A new conversation.")
    elif name == "/save" and rest.strip():
        write_history(Path(rest.strip()), talk.messages)
        say(f"{len(talk.messages)} messages written to {rest.strip()}")
    else:
        known = [each.partition(" ")[0] for each in COMMANDS]
        complain(f"there is no command {name!r} here{nearest(name, set(known) - {name}) or '. /help lists them.'}")
    return True


class Conversation:
    """A conversation with a model, with its messages so far."""

    def __init__(self, model: Any, toolbox: Toolbox, messages: list[BaseMessage], system: str | None) -> None:
        from langchain_core.messages import SystemMessage

        self.name = str(getattr(model, "model", None) or "sprout-m")
        self.asks_server = getattr(model, "server", None) not in {None, SERVER_OFF}
        self._model = model.bind_tools(toolbox.bound) if toolbox.bound else model
        self._toolbox = toolbox
        self._system = [] if system is None else [SystemMessage(system)]
        self.messages = messages or list(self._system)

    def begin_anew(self) -> None:
        """Drop all messages but the system prompt."""
        self.messages = list(self._system)

    def ask(self, text: str) -> None:
        """Ask a question, and print the answer as it comes. A question is removed if its answer fails."""
        from langchain_core.messages import HumanMessage, ToolMessage

        before = len(self.messages)
        self.messages.append(HumanMessage(text))
        try:
            for _ in range(MOST_ROUNDS):
                answer = self._answer()
                self.messages.append(answer)
                for call in answer.tool_calls:
                    shown = ", ".join(
                        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call["args"].items()
                    )
                    result, well = self._toolbox.call(call["name"], call["args"])
                    shown_call = fitted(f"{call['name']}({shown}) -> {result}", size().columns - 4)
                    say(colored(f"  {shown_call}", GRAY if well else RED))
                    status = "success" if well else "error"
                    self.messages.append(ToolMessage(result, tool_call_id=str(call["id"]), status=status))
                if not answer.tool_calls:
                    return
            complain(f"the model called tools {MOST_ROUNDS} times without an answer. Ask in smaller steps.")
        except BaseException:
            del self.messages[before:]  # a call without its result could not be continued
            raise

    def _answer(self) -> AIMessage:
        from langchain_core.messages import AIMessage, AIMessageChunk

        whole: AIMessageChunk | None = None
        messages = list(self.messages)
        for piece in Interruptible[AIMessageChunk](lambda: self._model.stream(messages)):
            whole = piece if whole is None else whole + piece
            if text := printable(str(piece.text)):
                say(text, end="")
        if whole is not None and whole.text:
            say()
        if whole is None:
            return AIMessage("")
        for call in whole.invalid_tool_calls:
            complain(f"the model began a call of {call['name']!r} that is none: {call['error']}")
        return AIMessage(whole.content, tool_calls=whole.tool_calls, response_metadata=whole.response_metadata)


def read_history(file: Path) -> list[BaseMessage]:
    """Return the conversation in a file; an empty one if there is no such file.

    Raises:
        InputError: the file holds no conversation.
    """
    from langchain_core.messages import messages_from_dict

    try:
        return list(messages_from_dict(json.loads(file.read_text(encoding="utf-8"))))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"--history: expected a conversation that /save or --history wrote, and {file} is none: {error}"
        ) from error


def write_history(file: Path, messages: list[BaseMessage]) -> None:
    """Write a conversation to a file that only this user can read.

    Raises:
        InputError: the file cannot be written.
    """
    from langchain_core.messages import messages_to_dict

    text = json.dumps(messages_to_dict(messages), ensure_ascii=False, indent=1)
    new = file.with_name(f".{file.name}.new")
    try:
        new.unlink(missing_ok=True)
        new.touch(0o600)
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    except (OSError, ValueError) as error:
        raise InputError(f"The conversation could not be written to {file}: {error}") from error


def read_all_of_stdin() -> str:
    """Return all of standard input; nothing if it is a terminal."""
    return "" if sys.stdin.isatty() else sys.stdin.read()
