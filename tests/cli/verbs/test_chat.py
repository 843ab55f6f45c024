"""A chat goes on when an answer is stopped."""

from __future__ import annotations

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.cli.verbs import chat


def test_an_answer_that_is_stopped_was_not_asked_and_the_chat_goes_on(own, monkeypatch, capsys):
    closed = []

    class Stopped:
        model = "x"

        def stream(self, messages):
            try:
                yield from ()
                raise KeyboardInterrupt
            finally:
                closed.append(len(messages))

    monkeypatch.setattr(chat, "chat_model", lambda options: Stopped())
    lines = iter(["hello", "/help"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines, None) or (_ for _ in ()).throw(EOFError))
    assert main(["chat", "--history", "h.json"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("(stopped)") < shown.index("/save FILE")
    assert closed == [1]
    assert not (own / "h.json").exists()
