"""``gemma-jax compare``: the loss of quality from packing a model's weights, measured on a text."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from langchain_gemma_jax.cli.terminal.arguments import Verbs, verb
from langchain_gemma_jax.cli.terminal.output import say
from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.configuration.how_to_load import WEIGHTS

MOST_BYTES = 1 << 24  # of a text


@dataclass(frozen=True)
class Result:
    """One way to store the weights: its size, its loss, and its agreement with the model as it is."""

    weights: str | None  # None: as the checkpoint has them
    bytes: int
    tokens: int  # of the text
    loss: float  # the mean over the text's tokens
    agreement: float | None  # the share of places where both predict the same token


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(
        verbs,
        "compare",
        "measure how much quality a model loses when its weights are packed",
        "gemma-jax compare google/gemma-3-1b-it --weights int8 --text my_page.txt",
    )
    parser.add_argument("model", help="a folder, a model's id on the Hugging Face Hub, or an embedded one: sprout-s")
    parser.add_argument("--weights", choices=WEIGHTS, help="int8 or int4; by default both")
    parser.add_argument(
        "--text",
        metavar="FILE",
        help="a text file, or - for standard input; by default a page that comes with the package",
    )
    parser.take_settings("dtype")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from langchain_gemma_jax.models.compare import TEXT

    text = TEXT if options.text is None else read_text(options.text)
    chosen = WEIGHTS if options.weights is None else (options.weights,)
    found = list(compare(options.model, chosen, text, options.dtype))
    if options.json:
        say(json.dumps({"model": options.model, "results": [asdict(each) for each in found]}))
    else:
        _show(options.model, found)
    return 0


def compare(model: str, chosen: tuple[str, ...], text: str, dtype: str | None = None) -> Iterator[Result]:
    """Measure the model as it is, then with its weights stored in each of the chosen ways, one in memory at a time."""
    from langchain_gemma_jax.models.compare import agreement, score
    from langchain_gemma_jax.models.loading.load import load

    with load(model, dtype=dtype) as dense:
        theirs, nbytes = score(dense, text), dense.nbytes
    yield Result(None, nbytes, len(theirs.best), theirs.loss, None)
    for weights in chosen:
        with load(model, dtype=dtype, weights=weights) as packed:
            ours = score(packed, text)
            yield Result(weights, packed.nbytes, len(ours.best), ours.loss, agreement(theirs, ours))


def read_text(name: str) -> str:
    """Return the text in a file, or of standard input.

    Raises:
        InputError: it cannot be read, or is no text.
    """
    try:
        data = sys.stdin.buffer.read(MOST_BYTES + 1) if name == "-" else _bytes(Path(name).expanduser())
        text = data.decode("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"--text: expected a file with a text in UTF-8, and {name} is none: {error}") from error
    if not text.strip() or len(data) > MOST_BYTES:
        raise InputError(f"--text: expected a text of 1 to {MOST_BYTES:,} bytes, found {len(data):,} in {name}.")
    return text


def _bytes(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES + 1)


def _show(model: str, results: list[Result]) -> None:
    dense = results[0]
    say(f"{model}, {dense.tokens:,} tokens")
    say(f"  {'weights':10} {'bytes':>10} {'mean loss':>10} {'of it':>8}  goes on with the same token")
    for each in results:
        line = f"  {each.weights or 'as they are':11} {show_bytes(each.bytes):>9} {each.loss:10.4f}"
        if each.agreement is not None:
            line += f" {each.loss / dense.loss:8.1%}  at {each.agreement:.1%} of the places"
        say(line)
