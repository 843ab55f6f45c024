"""Settings as options of the command: their type, check and help are those of the table."""

from __future__ import annotations

import re

import pytest

from langchain_gemma_jax.cli.terminal.arguments import Parser, given_settings
from langchain_gemma_jax.cli.terminal.setting_options import add_setting
from langchain_gemma_jax.settings.table import SETTINGS

TAKEN = ("max_tokens", "temperature", "timeout", "devices", "dtype")


@pytest.fixture
def parser() -> Parser:
    parser = Parser(prog="it")
    parser.take_settings(*TAKEN)
    return parser


def test_they_are_read_as_the_values_that_they_are(parser):
    given = ["--max-tokens", "9", "--temperature", "1", "--timeout", "2.5", "--devices", "auto", "--dtype", "float32"]
    found = given_settings(parser.parse_args(given))
    assert found == {"max_tokens": 9, "temperature": 1.0, "timeout": 2.5, "devices": "auto", "dtype": "float32"}
    assert [type(each) for each in found.values()] == [int, float, float, str, str]
    assert given_settings(parser.parse_args(["--devices", "2"])) == {"devices": 2}
    assert given_settings(parser.parse_args([])) == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--max-tokens", "0"], r"--max-tokens: expected a whole number from 1 to 2\*\*31 - 1, found '0'$"),
        (["--temperature", "hot"], "--temperature: expected a number from 0 to 100, found 'hot'$"),
        (["--timeout", "-1"], "--timeout: expected seconds from 0 to 2[*][*]31, found '-1'$"),
        (["--devices", "all"], "--devices: expected a whole number of devices from 1, or \"auto\", found 'all'$"),
        (["--dtype", "int8"], "--dtype: expected one of bfloat16, float32, float16, found 'int8'$"),
        (["--max-token", "1"], "no option '--max-token'. Did you mean '--max-tokens'"),
    ],
)
def test_what_is_not_possible_is_said(parser, given, said, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args(given)
    assert re.search(said, capsys.readouterr().err.splitlines()[0])


def test_their_help_is_the_beginning_of_their_documentation(parser):
    helps = {action.dest: (action.metavar, action.help) for action in parser.actions()}
    assert helps["dtype"] == (
        None,
        'the weights\' dtype: "bfloat16", "float32" or "float16"; by default the checkpoint\'s own',
    )
    assert helps["max_tokens"] == (
        "N",
        "the most tokens of an answer, thoughts too; by default until the context is full",
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_each_can_be_one(name):
    parser = Parser(prog="it")
    add_setting(parser, name)
    assert parser.format_help()
