"""Which process of a group this one is, from the command line."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import InputError
from langchain_gemma_jax.cli.command import main, parser
from langchain_gemma_jax.cli.serving.group_options import group_of


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--hosts", "2"], "--host-number, --leader, --hosts-key-file is missing"),
        (["--hosts", "1", "--host-number", "0", "--leader", "a:1", "--hosts-key-file", "/none"], "expected 2 at least"),
        (["--hosts", "2", "--host-number", "2", "--leader", "a:1", "--hosts-key-file", "/none"], "or up to 1 for one"),
        (["--hosts", "2", "--host-number", "0", "--leader", "a", "--hosts-key-file", "/none"], "expected HOST:PORT"),
        (["--hosts", "2", "--host-number", "0", "--leader", "a:1", "--hosts-key-file", "/none"], "Make one, and give"),
    ],
)
def test_a_group_that_cannot_be_is_refused(arguments, said, capsys):
    assert main(["serve", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_group_is_read_from_the_command_line(tmp_path):
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("x" * 31)
    asked = ["serve", "--hosts=2", "--host-number=1", "--leader=[::1]:8476", f"--hosts-key-file={key}"]
    with pytest.raises(InputError, match="expected 32 bytes at least, found 31"):
        group_of(parser().parse_args(asked))
    key.write_text("x" * 32)
    found = group_of(parser().parse_args(asked))
    assert found.address == ("::1", 8476)
    assert "xxx" not in repr(found)
    assert group_of(parser().parse_args(["serve"])) is None
