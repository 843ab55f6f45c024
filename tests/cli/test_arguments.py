"""Command lines, and what is said of wrong ones."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.cli.command import main

pytestmark = pytest.mark.usefixtures("own")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["modles"], "there is no command 'modles'. Did you mean 'models'?"),
        (["run", "--modle", "x"], "there is no option '--modle'. Did you mean '--model'?"),
        (["models", "pul"], "there is no action 'pul'. Did you mean 'pull'?"),
        (["--frobnicate"], "there is no option '--frobnicate'"),
        (["cache", "ls", "more"], "'more' is one argument more than expected"),
        (["top", "--every", "0"], "expected seconds, more than 0"),
        (["run", "x", "--max-tokens", "0"], "expected a whole number from 1"),
        (["compare", "x", "--weights", "int5"], "there is nothing 'int5'. Did you mean 'int"),
        (["run", "x", "--max-tokens", "many"], "expected a whole number from 1 to 2**31 - 1, found 'many'"),
        (["run", "x", "--timeout", "nan"], "expected seconds from 0 to 2**31, found 'nan'"),
        (["bench", "--tokens", "1"], "expected a whole number from 2"),
        (["bench", "--threshold", "ten"], "expected a share such as 0.1 or 10%, found 'ten'"),
        (["bench", "--threshold", "-1"], "expected a share such as 0.1 or 10%"),
        (["completion", "csh"], "there is no shell 'csh'. Did you mean 'zsh'?"),
        (["run", "--mod", "x", "y"], "there is no option '--mod'"),
    ],
)
def test_usage_is_explained_with_status_2(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert words in told
    assert "--help" in told
