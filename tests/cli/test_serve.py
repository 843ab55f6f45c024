"""``gemma-jax serve``: what it refuses, and what it makes ready."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn", reason="the extra [serve]")

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.cli.serving import serve


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "other machines can connect, so expected --api-key-file"),
        (["--socket", "/x/a.sock", "--port", "1"], "expected a socket or a port, found both"),
        (["--api-key-file", "/none"], "--api-key-file: /none cannot be read"),
        (["--socket", "/tmp/" + "x" * 200], "a socket's path has at most"),
    ],
)
def test_what_cannot_be_is_refused(arguments, said, capsys):
    assert main(["serve", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    shown = capsys.readouterr().out
    assert "ChatGemmaJax(server='auto')" in shown
    assert "gemma-jax serve --host 127.0.0.1 --port 8000" in shown
    assert serve.__doc__
