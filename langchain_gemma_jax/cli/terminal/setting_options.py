"""Options of the command that are settings: their type, check and help are those of the table of settings."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress
from functools import partial
from typing import get_args

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.settings.table import SETTINGS, ChatSettings, checked_setting


def add_setting(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the option of a setting to a parser."""
    parser.add_argument(
        f"--{name.replace('_', '-')}",
        type=partial(_value, name),
        metavar=SETTINGS[name].unit.upper() or None,
        help=_help(ChatSettings.model_fields[name].description or "").replace("%", "%%"),
    )


def _value(name: str, text: str) -> object:
    """Return an argument as the setting's value, checked."""
    value: object = text
    for kind in get_args(ChatSettings.model_fields[name].annotation):
        if kind in {int, float}:
            with suppress(ValueError):
                value = kind(text)
    try:
        return checked_setting(name, value)
    except InputError as error:
        expected = re.split(r", or None for |[,;] found ", str(error).removeprefix(f"{name}: "))[0]
        raise argparse.ArgumentTypeError(f"{expected}, found {text!r}") from None


def _help(doc: str) -> str:
    """Return the first sentence of a setting's documentation, and what is so by default."""
    text = " ".join(doc.replace("``", "").split()).removesuffix(".")
    meaning, default = text.partition(". ")[0], re.search(r"None(?:, [^:]*)?: (.*)", text)
    return meaning[0].lower() + meaning[1:] + (f"; by default {default[1]}" if default else "")
