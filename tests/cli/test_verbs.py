"""Every verb, at a terminal of two sizes and piped, with the model that comes with the package."""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import replace

import pytest

from langchain_gemma_jax.cli.command import main, parser
from langchain_gemma_jax.cli.serving import serve
from langchain_gemma_jax.engine.residency.status_file import StatusFile
from tests.cli.terminal import SIZES, Terminal
from tests.engine.residency.test_status_file import STATUS

pytestmark = pytest.mark.usefixtures("own")

VERBS = ["bench", "cache", "chat", "compare", "completion", "doctor", "models", "profile", "run", "top", "warmup"]

ACTIONS = ["cache clear", "cache ls", "cache verify", "models ls", "models pull", "models rm"]

SCHEMA = '{"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}'


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_verb_that_asks_a_model(own):
    for size in SIZES:
        (own / "h.json").unlink(missing_ok=True)
        every_verb(size, own)


def every_verb(size, own):
    small = ["--model", "sprout-s"]
    with Terminal(size) as terminal:
        if size is not None:  # piped, all of the input would be the question's
            assert main(["run", "What is the weather?", *small, "--max-tokens", "8"]) == 0
            assert terminal.take().strip()
        if size is None:
            terminal.type("What is the weather in Oslo?\n/tools\n/report\n/hlep\n/new\n/exit\n")
        else:
            terminal.type("What is the weather in Oslo?\n/tools\n/report\n/hlep\n/new\n")
            terminal.type("\x04")  # Ctrl-D
        server = f"{sys.executable} server.py"
        asked = ["chat", *small, "--tools", "my_tools.py", "--mcp", server, "--temperature", "0", "--history", "h.json"]
        assert main(asked) == 0
        shown = terminal.take()
        assert '  get_weather(city="Oslo") -> Sunny in Oslo, 21 degrees' in shown
        assert "get_weather\nadd\n" in shown
        assert "generated tokens" in shown
        assert "Did you mean '/help'?" in shown
        assert ("Ctrl-D ends" in shown) is (size is not None)
        kept = json.loads((own / "h.json").read_text())
        assert [each["type"] for each in kept] == ["human", "ai", "tool", "ai"]
        assert (own / "h.json").stat().st_mode & 0o077 == 0

        assert main(["run", "Where is Oslo?", *small, "--json", "--max-tokens", "8", "--seed", "1"]) == 0
        assert json.loads(terminal.take())["usage"]["output_tokens"] > 0
        assert main(["top"] if size is None else ["top", "--times", "2", "--every", "0.05"]) == 0
        assert ("\x1b[?1049l" in terminal.raw) is (size is not None)
        shown = terminal.take()
        assert f"process {os.getpid()}" in shown
        assert "sprout-s" in shown
        assert max(map(len, shown.split("\n"))) <= (size or (80, 24))[0]
        bench = ["bench", *small, "--rounds", "1", "--tokens", "8", "--prompt", "16"]
        assert main([*bench, "--output", "before.json"]) == 0
        assert "decode, 4 rows" in terminal.take()
        faster = json.loads((own / "before.json").read_text())
        for figure in faster["figures"]:
            figure["value"] *= 1000 if figure["better"] == "higher" else 0.001
        (own / "before.json").write_text(json.dumps(faster))
        assert main([*bench, "--against", "before.json"]) == 1
        assert "slower than before by more than 10%: first token, decode, 1 row" in " ".join(terminal.take().split())
        assert main(["warmup", "sprout-s", "--max-context", "16"]) == 0
        assert "programs, " in terminal.take()
        assert main(["run", "Where is Oslo?", *small, "--schema", SCHEMA, "--temperature", "0"]) == 0
        assert set(json.loads(terminal.take())) == {"yes"}
        assert main(["profile", *small, "--requests", "2", "--output", f"trace {size}"]) == 0
        assert f"2 requests are in trace {size}" in " ".join(terminal.take().split())
        assert list((own / f"trace {size}").rglob("*.xplane.pb"))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_verbs_that_only_look(size, own):
    board = StatusFile()
    board.show([replace(STATUS, name="./a/model/with/a/name/that/is/longer/than/the/line/of/a/terminal/should/be")])
    with Terminal(size) as terminal:
        for arguments, words in (
            (["doctor", "--quick"], "ok    devices: "),
            (["models"], "sprout-s"),
            (["models", "ls"], f"process {os.getpid()}"),
            (["cache", "ls"], "together"),
            (["completion", "fish"], "complete -c gemma-jax"),
            (["top"] if size is None else ["top", "--times", "2", "--every", "0.05"], f"process {os.getpid()}"),
        ):
            assert main(arguments) == 0
            drawn = terminal.raw
            shown = terminal.take()
            assert words in shown, arguments
            if arguments[0] in {"doctor", "top"} or (arguments[0] == "models" and size is not None):
                assert max(map(len, shown.replace("\r", "\n").split("\n"))) <= (size or (80, 24))[0], arguments
            assert ("\x1b" in drawn) is (size is not None and arguments[0] in {"doctor", "top"}), arguments
        assert main(["doctor", "--quick", "--json"]) == 0
        found = json.loads(terminal.take())
        assert found["verdict"] in {"ok", "warn"}
        assert {"releases", "devices", "memory", "multiplying in float32"} <= {
            each["what"] for each in found["findings"]
        }
    board.take_down()


@pytest.mark.parametrize("verb", [*VERBS, *ACTIONS])
def test_help_has_an_example(verb, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([*verb.split(), "--help"])
    shown = capsys.readouterr().out
    assert f"example:\n  {'git diff | ' * (verb == 'run')}" in shown
    assert f"gemma-jax {verb}" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "x", "--schema", "nothing.json"], "--schema: expected a JSON Schema"),
        (["run", "x", "--schema", "[1"], "--schema: expected"),
        (["chat", "--tools", "nothing.py"], "--tools: expected a Python file"),
        (["chat", "--tools", "bad.py"], "bad.py could not be run: ZeroDivisionError"),
        (["chat", "--tools", "none.py"], "expected tools in it"),
        (["chat", "--mcp", "/nothing/there"], "could not be started"),
        (["chat", "--mcp", f"{sys.executable} -c 'import sys; sys.exit(\"no key\")'"], "It wrote: no key"),
        (["chat", "--history", "bad.py"], "--history: expected a conversation"),
        (["chat"], "expected something to say, found nothing on standard input"),
        (["chat", "sprout-s", "--model", "sprout-m"], "one model, found two: 'sprout-s', and --model 'sprout-m'"),
        (["run", "sprout-s", "Hi", "--model", "sprout-m"], "one model, found two: 'sprout-s', and --model 'sprout-m'"),
        (["run", "sprout-s", "What", "is"], 'at most, found 3 words. Put the question in quotes: gemma-jax run "sprou'),
        (["run", "./gone.gguf", "Hi"], "'./gone.gguf' is not here: there is no file or folder at /"),
        (["run", "What", "now?"], "\nIf it is a part of the question, put the whole question in quotes."),
        (["run", "Hi", "--model", "no such"], "'no such' is neither a folder nor a file that exists here, nor a"),
        (
            ["serve", "sprout-s", "--model", "sprout-m"],
            "found both: sprout-s; --model sprout-m. Write one list: ",
        ),
        (["serve", "--model", "nosuch"], "'nosuch' is neither a folder nor a file that exists here, nor"),
        (["bench", "--against", "bad.py"], "--against: expected a file"),
        (["bench", "--against", "nothing.json"], "--against: expected a file"),
        (["profile", "nothing.py"], "expected a Python file"),
        (["models", "rm", "sprout-s"], "is part of this package"),
        (["compare", "sprout-s", "--text", "nothing.txt"], "--text: expected a file with a text in UTF-8"),
        (["compare", "sprout-s", "--text", "no.txt"], "--text: expected a file with a text in UTF-8"),
        (["compare", "sprout-s", "--text", "empty.txt"], "--text: expected a text of 1 to"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_status_2(arguments, words, own, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("" if arguments == ["chat"] else "Hello\n"))
    (own / "bad.py").write_text("1 / 0")
    (own / "none.py").write_text("number = 1")
    (own / "no.txt").write_bytes(b"\xff\xfe")
    (own / "empty.txt").write_text(" \n")
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("gemma-jax: ")
    assert words in shown.err
    assert shown.err.count("is neither") <= 1
    assert shown.out == ""


@pytest.mark.parametrize(
    ("arguments", "models"),
    [
        (["sprout-s", "sprout-m"], ("sprout-s", "sprout-m")),
        (["sprout-s", "--port", "1", "sprout-m"], ("sprout-s", "sprout-m")),
        (["--model", "sprout-m", "--model", "sprout-s"], ("sprout-m", "sprout-s")),
        (["sprout-s", "--model", "sprout-s"], ("sprout-s",)),
        ([], ()),
    ],
)
def test_a_server_takes_its_models_as_words_or_by_the_option(arguments, models):
    assert serve.models_of(parser().parse_args(["serve", *arguments])) == models
