"""The command ``gemma-jax``: finds the verb, runs it, and turns errors into one line and an exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from langchain_gemma_jax import __version__
from langchain_gemma_jax.cli.serving import serve
from langchain_gemma_jax.cli.terminal.arguments import Parser
from langchain_gemma_jax.cli.terminal.output import complain, drop_output, prepare_streams
from langchain_gemma_jax.cli.verbs import (
    bench,
    cache,
    chat,
    compare,
    completion,
    doctor,
    models,
    profile,
    run,
    top,
    warmup,
)
from langchain_gemma_jax.errors import GemmaJaxError

EPILOG = """\
exit status:
  0    success
  1    the check failed, or the answer is not valid
  2    not possible as requested
  130  interrupted
  141  the output pipe was closed

example:
  gemma-jax run "What is a ring buffer?"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status. ``EPILOG`` lists them."""
    prepare_streams()
    try:
        try:
            return _carry_out(arguments)
        finally:
            sys.stdout.flush()  # here, as a broken pipe cannot be handled any more when Python ends
    except BrokenPipeError:  # the reader of the pipe has closed it
        drop_output()
        return 141
    except OSError as error:  # such as a disk that is full
        with suppress(OSError):
            complain(f"{error.strerror or error}{'' if error.filename is None else f': {error.filename}'}")
        drop_output()
        return 2


def _carry_out(arguments: Sequence[str] | None) -> int:
    options = parser().parse_args(arguments)
    verb: Callable[[argparse.Namespace], int] = options.run
    try:
        return verb(options)
    except GemmaJaxError as error:
        link, *hints = error.__notes__
        complain("\n".join([str(error), *hints, link]))
        return 2
    except KeyboardInterrupt:
        return 130


def parser() -> Parser:
    """Return the parser of the whole command."""
    whole = Parser(
        prog="gemma-jax", description="Gemma on JAX, inside your own process. Try: gemma-jax chat", epilog=EPILOG
    )
    whole.add_argument("--version", action="version", version=f"gemma-jax {__version__}", help="show the release")
    verbs = whole.add_subparsers(metavar="COMMAND", title="commands")
    for verb in (chat, run, serve, models, doctor, top, warmup, bench, compare, profile, cache, completion):
        verb.add(verbs)
    # A missing command is only an error when `run` is called, so errors in the options are reported first.
    whole.set_defaults(run=lambda _: whole.error("which command?"), whole=whole)
    return whole
