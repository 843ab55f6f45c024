"""Parsing of command lines, with a hint for a misspelled option or command."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, TypeAlias

Verbs: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001
"""The collection that verbs are added to, which has no public type in argparse."""


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest option, takes no abbreviations, and keeps the lines of its examples."""

    def __init__(self, *, prog: str | None = None, **texts: Any) -> None:
        super().__init__(prog, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **texts)
        self._words: str | None = None
        self._settings: tuple[str, ...] | str = ()

    def take_words(self, name: str, shown: str, text: str) -> None:
        """Take any number of words that belong to no option, at any place: argparse alone takes only the first ones.

        Args:
            name: the name of their list in the result.
            shown: their placeholder in the help.
            text: their description in the help.
        """
        self._words = name
        self.usage = f"%(prog)s [options] {shown}"
        self.add_argument(name, nargs="*", metavar=shown, help=text)

    def take_settings(self, *names: str) -> None:
        """Take settings as options. ``given_settings`` returns those that were given."""
        self._settings = names

    def take_settings_of(self, what: str) -> None:
        """Take all settings of "a model", or of "a server", as options."""
        self._settings = what

    def actions(self) -> list[argparse.Action]:
        """Return all that can be given. The table of settings is read here, as its import takes time."""
        if self._settings:
            from langchain_gemma_jax.cli.terminal.setting_options import add_setting, settings_of

            asked, self._settings = self._settings, ()
            names = settings_of(asked) if isinstance(asked, str) else asked
            self.set_defaults(settings=names)
            for name in names:
                add_setting(self, name)
        return self._actions

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse arguments. Unknown ones are an error here, in the verb's own parser, which can suggest its options."""
        self.actions()
        found, rest = super().parse_known_args(args, namespace)
        for each in rest:
            unknown = each.partition("=")[0]
            if unknown.startswith("-") and unknown != "-":
                self.error(f"there is no option {unknown!r}{nearest(unknown, self.option_names())}")
            if (words := self._words) is None:
                self.error(f"{unknown!r} is one argument more than expected")
            else:
                getattr(found, words).append(each)
        return found, []

    def option_names(self) -> list[str]:
        """Return the options, in all their spellings."""
        return [name for action in self.actions() for name in action.option_strings]

    def error(self, message: str) -> Any:
        """Print what is wrong and the command for help, and end the process with status 2."""
        self.exit(2, f"{self.prog}: {message}\nSee: {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(each) for each in action.choices]
            what = f"no {action.metavar.lower()}" if isinstance(action.metavar, str) else "nothing"
            hint = nearest(str(value), known) or f". There are: {', '.join(known)}"
            self.error(f"there is {what} {value!r}{hint}")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a question that suggests the known word nearest to this one; nothing if none is near."""
    found = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f". Did you mean {found[0]!r}?" if found else ""


def verb(verbs: Verbs, name: str, text: str, example: str) -> Parser:
    """Add a verb, with a sentence and an example of its use, and return its parser."""
    return verbs.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=f"example:\n  {example}\n"
    )


def given_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings among a verb's options that were given."""
    return {name: value for name in options.settings if (value := getattr(options, name)) is not None}


def count(text: str) -> int:
    """Return an argument as a whole number from 1."""
    return _whole(text, 1)


def count_from_0(text: str) -> int:
    """Return an argument as a whole number from 0."""
    return _whole(text, 0)


def count_from_2(text: str) -> int:
    """Return an argument as a whole number from 2."""
    return _whole(text, 2)


def _whole(text: str, least: int) -> int:
    with suppress(ValueError):
        if (number := int(text)) >= least:
            return number
    raise argparse.ArgumentTypeError(f"expected a whole number from {least}, found {text!r}")


def seconds(text: str) -> float:
    """Return an argument as a positive number of seconds."""
    with suppress(ValueError):
        if 0 < (number := float(text)) < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"expected seconds, more than 0, found {text!r}")


def share(text: str) -> float:
    """Return an argument, such as 0.1 or 10%, as a share."""
    with suppress(ValueError):
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        if 0 <= number < 10:
            return number
    raise argparse.ArgumentTypeError(f"expected a share such as 0.1 or 10%, found {text!r}")


def subverbs(parser: Parser, metavar: str) -> Verbs:
    """Return a collection for the verbs of a verb."""
    return parser.add_subparsers(metavar=metavar)
