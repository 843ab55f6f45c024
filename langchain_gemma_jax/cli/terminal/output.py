"""Text for terminals, pipes and files: never more than they can show, and nothing in it that steers them."""

from __future__ import annotations

import io
import os
import sys
import textwrap
import unicodedata
from contextlib import suppress

from langchain_gemma_jax.config import plain_terminal

USUAL = os.terminal_size((80, 24))
GRAY, BOLD, RED, GREEN, YELLOW = "90", "1", "31", "32", "33"


def prepare_streams() -> None:
    """Have characters replaced that the output cannot hold or the input does not mean: neither is a reason to end.

    Streams that are closed become ones that nothing comes from, and that keep nothing.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  as long as the process
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "replace":
            stream.reconfigure(errors="replace")


def drop_output() -> None:
    """Have what was not written yet go nowhere, so that the end of Python does not try once more."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(text: str = "", end: str = "\n") -> None:
    """Print a line for whoever gave the command, at once."""
    print(text, end=end, flush=True)  # noqa: T201  that is what a command does


def complain(text: str) -> None:
    """Print a line on standard error, under the command's name."""
    print(f"gemma-jax: {printable(text)}", file=sys.stderr, flush=True)  # noqa: T201  that is what a command does


def interactive() -> bool:
    """Whether somebody sits at a terminal and sees what is printed."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def live() -> bool:
    """Whether the screen can be drawn anew: standard output is a terminal that knows how."""
    return sys.stdout.isatty() and not plain_terminal()


def colored(text: str, color: str) -> str:
    """Return a text in a colour, where there are colours."""
    return f"\x1b[{color}m{text}\x1b[0m" if live() else text


def can_show(text: str) -> bool:
    """Whether standard output's encoding has these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def size() -> os.terminal_size:
    """Return the columns and lines that there are."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):  # a pipe, or nothing that the system knows of
        found = os.terminal_size((0, 0))
    return found if found.columns > 0 and found.lines > 0 else USUAL


def printable(text: str) -> str:
    """Return a text without what steers a terminal: a model, a tool or a file may have written it."""
    return "".join(each if each in "\n\t" or each.isprintable() else "�" for each in text)


def say_wrapped(text: str) -> None:
    """Print a line for whoever gave the command, as several where the terminal is narrower; to a pipe as it is."""
    if not sys.stdout.isatty():
        say(text)
        return
    begin = text[: len(text) - len(text.lstrip())]
    rest = {"initial_indent": begin, "subsequent_indent": f"{begin}    ", "break_on_hyphens": False}
    say("\n".join(textwrap.wrap(text.strip(), max(20, size().columns), **rest)))  # type: ignore[arg-type]


def fitted(text: str, columns: int) -> str:
    """Return one line of so many columns at most."""
    flat = printable(text).replace("\n", " ").replace("\t", " ")
    if sum(map(_columns, flat)) <= columns:
        return flat
    room, kept = columns - 3, ""
    for each in flat:
        room -= _columns(each)
        if room < 0:
            break
        kept += each
    return kept + "..."[: max(0, columns)]


def _columns(character: str) -> int:
    """How many columns a character takes: two if it is Chinese, say, and none if it is an accent of the one before."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
