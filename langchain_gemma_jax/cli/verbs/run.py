"""``gemma-jax run``: one question, one answer."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_gemma_jax.cli.terminal.arguments import Verbs, verb
from langchain_gemma_jax.cli.terminal.interruptible import Interruptible
from langchain_gemma_jax.cli.terminal.output import complain, printable, say
from langchain_gemma_jax.cli.verbs.chat import add_model_options, chat_model, named_model, read_all_of_stdin
from langchain_gemma_jax.errors import InputError, UnknownModelError
from langchain_gemma_jax.models.loading.model_names import means_model

WORDS = (
    "of two words the first is the model. One alone is the question, unless it is a model's name: sprout-s, "
    "ollama:..., torchax:..., a model's file or folder, an id with gemma in it. Without a question, all of standard "
    "input is it"
)


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(
        verbs,
        "run",
        "ask one question; piped input is part of it",
        "git diff | gemma-jax run 'Which files does this change?' --json",
    )
    parser.take_words("words", "[MODEL] [QUESTION]", WORDS)
    add_model_options(parser)
    parser.add_argument("--schema", metavar="JSON", help="a JSON Schema, or a file with one, that the answer matches")
    parser.add_argument("--json", action="store_true", help="print the answer with its tokens and times, as JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    schema = None if options.schema is None else read_schema(options.schema)
    word, question = model_and_question(options.words, has_model=options.model is not None)
    options.model = named_model(word, options)
    messages = _messages(question, options)
    try:
        model = chat_model(options)
    except UnknownModelError as error:
        if word is not None and len(options.words) > 1:
            error.add_note("If it is a part of the question, put the whole question in quotes.")
        raise
    began = time.monotonic()
    if schema is None:
        whole = _stream(model, messages, silent=options.json)
        parsed, wrong = None, None
    else:
        structured = model.with_structured_output(schema, include_raw=True)
        (found,) = Interruptible[dict[str, Any]](lambda: [structured.invoke(messages)])
        whole, parsed, wrong = found["raw"], found["parsed"], found["parsing_error"]
    if options.json:
        say(json.dumps(_described(whole, parsed, wrong, time.monotonic() - began, structured=schema is not None)))
    elif schema is not None and wrong is None:
        say(json.dumps(parsed, ensure_ascii=False))
    if wrong is not None:
        complain(f"the answer does not fit the schema: {wrong}")
        return 1
    return 0


def model_and_question(words: Sequence[str], *, has_model: bool) -> tuple[str | None, str | None]:
    """Return the model and the question among the words of the command; None for one that is not there.

    Raises:
        InputError: there are more than two words.
    """
    if len(words) > 2:
        whole = " ".join(words)
        raise InputError(
            f"expected a model and a question at most, found {len(words)} words. Put the question in quotes: "
            f'gemma-jax run "{whole if len(whole) <= 60 else whole[:60] + "..."}"'
        )
    if len(words) == 2:
        return words[0], words[1]
    if words and not has_model and means_model(words[0]):
        return words[0], None
    return None, words[0] if words else None


def _messages(question: str | None, options: argparse.Namespace) -> list[Any]:
    piped = "" if question not in (None, "-") and sys.stdin.isatty() else read_all_of_stdin()
    asked = "" if question in (None, "-") else question.encode(errors="replace").decode()
    text = "\n\n".join(part for part in (asked.strip(), piped.strip()) if part)
    if not text:
        model = "" if options.model is None else f"{options.model} "
        raise InputError(
            f'expected a question: gemma-jax run {model}"What is a ring buffer?", or one on standard input.'
        )
    return [*([("system", options.system)] if options.system else []), ("human", text)]


def _stream(model: Any, messages: list[Any], *, silent: bool) -> Any:
    whole = None
    for piece in Interruptible[Any](lambda: model.stream(messages)):
        whole = piece if whole is None else whole + piece
        if not silent and (text := printable(str(piece.text))):
            say(text, end="")
    if not silent:
        say()
    return whole


def _described(whole: Any, parsed: object, wrong: object, took: float, *, structured: bool) -> dict[str, object]:
    metadata = whole.response_metadata
    return {
        "text": str(whole.text),
        **({"parsed": parsed, "error": None if wrong is None else str(wrong)} if structured else {}),
        "model": metadata.get("model_name"),
        "finish_reason": metadata.get("finish_reason"),
        "usage": whole.usage_metadata,
        "seconds": round(took, 3),
    }


def read_schema(given: str) -> dict[str, Any]:
    """Return the JSON Schema that an argument holds, or that is in the file which it names.

    Raises:
        InputError: it is neither a schema nor such a file.
    """
    text = given
    try:
        if not given.lstrip().startswith("{"):
            text = Path(given).expanduser().read_text(encoding="utf-8")
        schema = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"--schema: expected a JSON Schema, or a file with one, found {given!r}: {error}") from error
    if not isinstance(schema, dict):
        raise InputError(f"--schema: expected a JSON object, found {text[:80]!r}.")
    schema.setdefault("title", "answer")  # LangChain requires a name
    return schema
