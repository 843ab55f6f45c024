"""Text for terminals, pipes and files: only characters that they can show, and no control sequences."""

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
    """Have characters that cannot be encoded or decoded replaced, instead of an error.

    Closed streams are replaced by the null device.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  as long as the process
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "replace":
            stream.reconfigure(errors="replace")


def drop_output() -> None:
    """Send unwritten output to the null device, so that Python does not try to write it again when it ends."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(text: str = "", end: str = "\n") -> None:
    """Print a line on standard output, and flush it."""
    print(text, end=end, flush=True)  # noqa: T201  that is what a command does


def complain(text: str) -> None:
    """Print a line on standard error, under the command's name."""
    print(f"gemma-jax: {printable(text)}", file=sys.stderr, flush=True)  # noqa: T201  that is what a command does


def interactive() -> bool:
    """Return True if standard input and output are both a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def live() -> bool:
    """Return True if standard output is a terminal that takes control sequences."""
    return sys.stdout.isatty() and not plain_terminal()


def colored(text: str, color: str) -> str:
    """Return a text in a color; unchanged if the terminal takes no control sequences."""
    return f"\x1b[{color}m{text}\x1b[0m" if live() else text


def can_show(text: str) -> bool:
    """Return True if standard output's encoding has all characters of a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def size() -> os.terminal_size:
    """Return the columns and lines of the terminal; the usual ones if there is none."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):  # a pipe, or a stream without a file descriptor
        found = os.terminal_size((0, 0))
    return found if found.columns > 0 and found.lines > 0 else USUAL


def printable(text: str) -> str:
    """Return a text with control characters replaced: a model, a tool or a file may have written it."""
    return "".join(each if each in "\n\t" or each.isprintable() else "�" for each in text)


def say_wrapped(text: str) -> None:
    """Print a line, wrapped at the terminal's width; to a pipe as it is."""
    if not sys.stdout.isatty():
        say(text)
        return
    begin = text[: len(text) - len(text.lstrip())]
    rest = {"initial_indent": begin, "subsequent_indent": f"{begin}    ", "break_on_hyphens": False}
    say("\n".join(textwrap.wrap(text.strip(), max(20, size().columns), **rest)))  # type: ignore[arg-type]


def fitted(text: str, columns: int) -> str:
    """Return a text as one line of at most ``columns`` columns, with dots for what was cut off."""
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
    """Return the columns that a character takes: two for wide ones such as Chinese, none for combining ones."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
