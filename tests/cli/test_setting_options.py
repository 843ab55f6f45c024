"""Settings as options of the command: their type, check and help are those of the table."""

from __future__ import annotations

import re

import pytest

from langchain_gemma_jax.cli.terminal.arguments import Parser, given_settings
from langchain_gemma_jax.cli.terminal.setting_options import add_setting
from langchain_gemma_jax.settings.table import SETTINGS

TAKEN = (
    "max_tokens", "temperature", "timeout", "devices", "dtype", "thinking", "logprobs", "stop", "logit_bias",
    "pan_and_scan", "route", "guards", "keep_alive",
)  # fmt: skip


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
    for arguments, value in (
        (["--thinking"], {"thinking": True}),
        (["--no-thinking", "--logprobs"], {"thinking": False, "logprobs": True}),
        (["--stop", "a", "--stop", "b"], {"stop": ["a", "b"]}),
        (["--logit-bias", '{"5": -100}'], {"logit_bias": {5: -100.0}}),
        (["--logit-bias", "5=-100,7=1.5"], {"logit_bias": {5: -100.0, 7: 1.5}}),
        (["--pan-and-scan", "true"], {"pan_and_scan": True}),
        (["--pan-and-scan", "max_num_crops=2"], {"pan_and_scan": {"max_num_crops": 2}}),
        (["--route", "light=1,heavy=./b"], {"route": {"light": "1", "heavy": "./b"}}),
        (["--route", '{"light": "a", "heavy": "b"}'], {"route": {"light": "a", "heavy": "b"}}),
        (["--guards", "warn"], {"guards": "warn"}),
        (["--guards", "recompile=raise,transfer=off"], {"guards": {"recompile": "raise", "transfer": "off"}}),
        (["--keep-alive", "5m"], {"keep_alive": 300.0}),
    ):
        assert given_settings(parser.parse_args(arguments)) == value
    assert given_settings(parser.parse_args([])) == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--max-tokens", "0"], r"--max-tokens: expected a whole number from 1 to 2\*\*31 - 1, found '0'$"),
        (["--temperature", "hot"], "--temperature: expected a number from 0 to 100, found 'hot'$"),
        (["--timeout", "-1"], "--timeout: expected seconds from 0 to 2[*][*]31, found '-1'$"),
        (["--devices", "all"], "--devices: expected a whole number of devices from 1, or \"auto\", found 'all'$"),
        (["--stop", "a", "--stop", ""], "--stop: .*found"),
        (["--route", "light=a"], "--route: .*two or more models that differ"),
        (["--pan-and-scan", "often"], "--pan-and-scan: expected True, False, or a dictionary"),
        (["--guards", "recompile=often"], "--guards: .*expected one of off, warn"),
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
        "the most tokens of an answer, thoughts included; by default until the context is full",
    )


def test_a_verb_takes_all_settings_of_a_model_or_of_a_server():
    of = {}
    for what in ("a model", "a server"):
        parser = Parser(prog="it")
        parser.take_settings_of(what)
        of[what] = set(parser.parse_args([]).settings)
    assert of["a model"] == set(SETTINGS) - {"model"}
    assert of["a model"] - of["a server"] == {
        "scope", "app", "trust_remote_code", "media_folders", "allow_urls", "session"
    }, "each caller's own"  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_each_can_be_one(name):
    parser = Parser(prog="it")
    add_setting(parser, name)
    assert parser.format_help()
