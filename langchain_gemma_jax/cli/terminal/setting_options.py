"""Options of the command that are settings: their type, check and help are those of the table of settings."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, get_args, get_origin

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.settings.table import OF_A_MODEL, OF_A_SERVER, SETTINGS, ChatSettings, checked_setting

_PAIR = re.compile(r"[\w-]+=[^,={}]+(?:,[\w-]+=[^,={}]+)*")  # light=./a,heavy=./b


def settings_of(what: str) -> tuple[str, ...]:
    """Return the settings of "a model", or those of "a server"."""
    return {"a model": OF_A_MODEL, "a server": OF_A_SERVER}[what]


def add_setting(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the option of a setting to a parser."""
    option = f"--{name.replace('_', '-')}"
    text = _help(ChatSettings.model_fields[name].description or "").replace("%", "%%")
    kinds = _kinds(name)
    if kinds == {bool}:
        parser.add_argument(option, action=argparse.BooleanOptionalAction, default=None, help=text)
    elif kinds == {list}:
        parser.add_argument(option, action=_Listed, help=f"{text}; may be given more than once")
    else:
        metavar = SETTINGS[name].unit.upper() or None
        parser.add_argument(option, type=partial(_value, name), metavar=metavar, help=text)


class _Listed(argparse.Action):
    """One more value of a list, which is checked whole."""

    def __call__(self, _: object, namespace: argparse.Namespace, value: Any, __: str | None = None) -> None:
        listed = [*(getattr(namespace, self.dest) or ()), value]
        try:
            checked_setting(self.dest, listed)
        except InputError as error:
            raise argparse.ArgumentError(self, str(error).removeprefix(f"{self.dest}: ")) from None
        setattr(namespace, self.dest, listed)


def _kinds(name: str) -> set[Any]:
    """Return the types that a setting's value may have, besides None."""
    annotation = ChatSettings.model_fields[name].annotation
    found = get_args(annotation) if get_origin(annotation) is not list else (annotation,)
    return {get_origin(each) or each for each in found or (annotation,)} - {type(None)}


def _value(name: str, text: str) -> object:
    """Return an argument as the setting's value, checked."""
    try:
        return checked_setting(name, _read(name, text))
    except InputError as error:
        expected = re.split(r", or None for |[,;] found ", str(error).removeprefix(f"{name}: "))[0]
        raise argparse.ArgumentTypeError(f"{expected}, found {text!r}") from None


def _read(name: str, text: str) -> object:
    """Return an argument as a number, a truth value, or what JSON or pairs of it say, as the setting's type has it."""
    kinds = _kinds(name)
    for kind in (int, float):
        if kind in kinds:
            with suppress(ValueError):
                return kind(text)
    if kinds & {dict, Any} and _PAIR.fullmatch(text):
        pairs = dict(part.split("=", 1) for part in text.split(","))
        return pairs if Any in kinds else _numbered(name, {key: _scalar(value) for key, value in pairs.items()})
    if kinds & {dict, bool, Any}:
        with suppress(ValueError, RecursionError):
            found = json.loads(text)
            return _numbered(name, found) if isinstance(found, dict) else found
    return text


def _scalar(text: str) -> object:
    """Return a number or a truth value where a text is one."""
    with suppress(ValueError):
        return json.loads(text)
    return text


def _numbered(name: str, values: Mapping[str, Any]) -> dict[Any, Any]:
    """Return a dictionary whose keys and values are numbers, if the setting's are: JSON's keys are texts."""
    numbers = any(get_args(each)[:1] == (int,) for each in get_args(ChatSettings.model_fields[name].annotation))
    if not numbers:
        return dict(values)
    with suppress(ValueError):
        return {int(key): float(value) for key, value in values.items()}
    return dict(values)


def _help(doc: str) -> str:
    """Return the first sentence of a setting's documentation, and what is so by default."""
    text = " ".join(doc.replace("``", "").split()).removesuffix(".")
    meaning, default = text.partition(". ")[0], re.search(r"None(?:, [^:]*)?: (.*)", text)
    return meaning[0].lower() + meaning[1:] + (f"; by default {default[1]}" if default else "")
