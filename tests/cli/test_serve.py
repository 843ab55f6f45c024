"""``gemma-jax serve``: what it refuses, and what it makes ready."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra [serve]")

from langchain_gemma_jax.cli.command import main, parser
from langchain_gemma_jax.cli.serving import serve
from tests.waiting import until


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


def test_settings_are_the_engines_or_hold_for_whoever_asks():
    asked = [
        "serve",
        "--weights",
        "int8",
        "--temperature",
        "0.5",
        "--keep-alive",
        "5m",
        "--devices",
        "2",
        "--no-thinking",
    ]
    options = parser().parse_args([*asked, "--no-page"])
    assert serve._for_callers(options) == {"weights": "int8", "temperature": 0.5, "thinking": False}
    assert options.no_page


def test_the_page_is_opened_at_a_port_of_this_machine(monkeypatch, capsys):
    opened, served = [], []
    monkeypatch.setattr(serve.webbrowser, "open", opened.append)
    monkeypatch.setattr("langchain_gemma_jax.server.running.RunningServer.run", lambda self: served.append(self.app))
    assert main(["serve", "sprout-s", "--port", "0", "--open"]) == 0
    until(lambda: opened)
    assert opened[0].startswith("http://127.0.0.1:")
    assert f"In a browser: {opened[0]}" in capsys.readouterr().out
    assert main(["serve", "--open", "--socket", "/x/a.sock"]) == 2
    assert "browsers open none" in capsys.readouterr().err


def test_a_folder_that_replicas_share_is_named_with_its_key(monkeypatch, tmp_path):
    told = []
    monkeypatch.setattr("langchain_gemma_jax.configure", lambda **given: told.append(given))
    monkeypatch.chdir(tmp_path)
    unset = dict.fromkeys(("max_context", "devices", "replicas", "prefix_store", "prefix_folder", "prefix_key_file"))
    unset["prefix_peers"] = None
    places = {"prefix_folder": "/mnt/prefixes", "prefix_key_file": "key"}
    serve._configure(Namespace(settings=(), **unset | places), None)
    assert told[-1] == {
        "prefix_store": None, "prefix_folder": Path("/mnt/prefixes"), "prefix_key_file": tmp_path / "key",
        "prefix_peers": None,
    }  # fmt: skip
    serve._configure(Namespace(settings=(), **unset), None)
    assert len(told) == 3, "nothing is said of prefixes"
    serve._configure(Namespace(settings=(), **unset | {"prefix_peers": "http://a:1, http://b:2"}), None)
    assert told[-1] == {"prefix_store": None, "prefix_peers": ["http://a:1", "http://b:2"]}
