"""``gemma-jax completion``: scripts with which shells complete commands and options."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from langchain_gemma_jax.cli.terminal.arguments import Parser, Verbs, verb
from langchain_gemma_jax.cli.terminal.output import say

HOW = {
    "bash": "source <(gemma-jax completion bash)",
    "zsh": "source <(gemma-jax completion zsh)",
    "fish": "gemma-jax completion fish | source",
}


@dataclass(frozen=True)
class Words:
    """The verbs and options that may follow some words of a command line."""

    before: tuple[str, ...]  # verbs
    verbs: dict[str, str]  # with their help
    options: dict[str, str]


def add(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(verbs, "completion", "print what a shell needs to complete commands and options", HOW["bash"])
    parser.add_argument("shell", choices=list(HOW), metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    found = words(options.whole)
    say({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](found).rstrip("\n"))
    return 0


def words(parser: Parser, before: tuple[str, ...] = ()) -> list[Words]:
    """Return the words that may follow the command, each verb, and each verb of a verb."""
    verbs: dict[str, Parser] = {}
    helps: dict[str, str] = {}
    options: dict[str, str] = {}
    for action in parser.actions():
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            verbs |= action.choices
            helps |= {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001
        for name in action.option_strings:
            options[name] = action.help or ""
    found = [Words(before, {name: helps.get(name, "") for name in verbs}, options)]
    for name, each in verbs.items():
        found += words(each, (*before, name))
    return found


def bash(places: list[Words]) -> str:
    """Return a script for bash. Files are completed if none of the command's words fits."""
    cases = "\n".join(
        f"        {_case(each)}) words={_quoted(' '.join([*each.verbs, *each.options]))} ;;" for each in places
    )
    return f"""# {HOW["bash"]}
_gemma_jax() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" path="" word words=""
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$path $word" in
            {"|".join(_quoted(" " + " ".join(each.before)) for each in places if each.before)}) path="$path $word" ;;
        esac
    done
    case "$path" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _gemma_jax gemma-jax
"""


def zsh(places: list[Words]) -> str:
    """Return a script for zsh, which can use bash's."""
    return f"# {HOW['zsh']}\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + bash(
        places
    )


def fish(places: list[Words]) -> str:
    """Return a script for fish."""
    lines = [f"# {HOW['fish']}"]
    for each in places:
        seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in each.before)
        taken = " ".join(each.verbs)
        here = "; and ".join(
            part for part in (seen, f"not __fish_seen_subcommand_from {taken}" if taken else "") if part
        )
        for name, text in each.verbs.items():
            lines.append(f"complete -c gemma-jax -f -n {_quoted(here or 'true')} -a {name} -d {_quoted(text)}")
        for name, text in each.options.items():
            kind = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            lines.append(f"complete -c gemma-jax -n {_quoted(here or 'true')} {kind} -d {_quoted(text)}")
    return "\n".join(lines) + "\n"


def _case(words: Words) -> str:
    return _quoted("".join(f" {name}" for name in words.before))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
