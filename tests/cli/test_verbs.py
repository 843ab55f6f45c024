"""Every verb, at a terminal of two sizes and piped, with the model that comes with the package."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from huggingface_hub import constants

from langchain_gemma_jax.cli.command import main, parser
from langchain_gemma_jax.cli.serving import serve
from langchain_gemma_jax.cli.terminal import output
from langchain_gemma_jax.cli.tools import mcp_server
from langchain_gemma_jax.cli.tools.mcp_server import McpServer
from langchain_gemma_jax.cli.tools.toolbox import Toolbox
from langchain_gemma_jax.cli.verbs import chat
from langchain_gemma_jax.engine.residency.status_file import StatusFile
from langchain_gemma_jax.errors import InputError
from tests.cli.terminal import SIZES, Terminal
from tests.engine.residency.test_status_file import STATUS
from tests.models.gguf import test_header as gguf_file
from tests.models.gguf.ollama_store import Store
from tests.own_engine import own_engine

VERBS = ["bench", "cache", "chat", "compare", "completion", "doctor", "models", "profile", "run", "top", "warmup"]

ACTIONS = ["cache clear", "cache ls", "cache verify", "models ls", "models pull", "models rm"]

TOOLS = '''
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sunny in {city}, 21 degrees"
'''
SCHEMA = '{"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}'
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    elif asked.get("method") == "tools/list" and "cursor" not in asked["params"]:
        result = {"tools": [], "nextCursor": "2"}
    elif asked.get("method") == "tools/list":
        result = {"tools": [{"name": "add", "description": "Add two numbers.", "inputSchema": {"type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}]}
    elif asked.get("method") == "tools/call":
        given = asked["params"]["arguments"]
        result = {"content": [{"type": "text", "text": str(given["a"] + given["b"])}], "isError": given["a"] < 0}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "method": "ping", "id": "p"}), flush=True)
    print("not json", flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Compiled programs are kept from test to test of this file."""
    folder = tmp_path_factory.mktemp("programs")
    folder.chmod(0o700)
    return folder


@pytest.fixture(autouse=True)
def own(tmp_path, programs, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", str(programs))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_tools.py").write_text(TOOLS)
    (tmp_path / "server.py").write_text(SERVER)
    with own_engine():
        yield tmp_path


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


def test_lists_of_models_fit_a_narrow_terminal(own):
    board = StatusFile()
    board.show([replace(STATUS, name="./a/model/with/a/name/that/is/longer/than/the/line")])
    with Terminal((40, 24)) as terminal:
        assert main(["models"]) == 0
        lines = terminal.take().replace("\r", "").split("\n")
    board.take_down()
    assert max(map(len, lines)) <= 40
    assert "  google/gemma-3-1b-it" in [line[:22] for line in lines]
    assert "      tokens" in lines  # what is left of a line stands under it


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
        (["modles"], "there is no command 'modles'. Did you mean 'models'?"),
        (["run", "--modle", "x"], "there is no option '--modle'. Did you mean '--model'?"),
        (["models", "pul"], "there is no action 'pul'. Did you mean 'pull'?"),
        (["--frobnicate"], "there is no option '--frobnicate'"),
        (["cache", "ls", "more"], "'more' is one argument more than expected"),
        (["top", "--every", "0"], "expected seconds, more than 0"),
        (["run", "x", "--max-tokens", "0"], "expected a whole number from 1"),
        (["compare", "x", "--weights", "int5"], "there is nothing 'int5'. Did you mean 'int"),
        (["run", "x", "--max-tokens", "many"], "expected a whole number from 1, found 'many'"),
        (["run", "x", "--timeout", "nan"], "expected seconds, more than 0, found 'nan'"),
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
    ("arguments", "piped", "model", "asked"),
    [
        (["run", "Hi there"], "", None, "Hi there"),
        (["run", "sprout-s", "Hi there"], "", "sprout-s", "Hi there"),
        (["run", "sprout-s", "--seed", "1", "Hi there"], "", "sprout-s", "Hi there"),
        (["run", "sprout-s", "sprout-m"], "", "sprout-s", "sprout-m"),
        (["run", "sprout-s"], "Piped", "sprout-s", "Piped"),
        (["run", "ollama:gemma3:4b", "-"], "Piped", "ollama:gemma3:4b", "Piped"),
        (["run", "unsloth/gemma-3-1b-it-GGUF:Q8_0"], "Piped", "unsloth/gemma-3-1b-it-GGUF:Q8_0", "Piped"),
        (["run", "TCP/IP"], "Piped", None, "TCP/IP\n\nPiped"),
        (["run", "notes"], "Piped", None, "notes\n\nPiped"),
        (["run", "here"], "Piped", "here", "Piped"),
        (["run", "sprout-m", "--model", "sprout-s"], "", "sprout-s", "sprout-m"),
        (["run", "sprout-s", "Hi", "--model", "sprout-s"], "", "sprout-s", "Hi"),
        (["chat"], "Hi\n", None, "Hi"),
        (["chat", "sprout-s"], "Hi\n", "sprout-s", "Hi"),
        (["chat", "--seed", "1", "sprout-s"], "Hi\n", "sprout-s", "Hi"),
        (["chat", "--model", "sprout-s", "sprout-s"], "Hi\n", "sprout-s", "Hi"),
    ],
)
def test_a_bare_word_is_the_model_or_the_question(arguments, piped, model, asked, own, monkeypatch, capsys):
    from langchain_core.messages import AIMessageChunk

    import langchain_gemma_jax

    class Model:
        def __init__(self, **given):
            heard.append(given.get("model"))

        def stream(self, messages):
            last = messages[-1]
            heard.append(last[1] if isinstance(last, tuple) else last.content)
            yield AIMessageChunk("Yes.")

    heard = []
    (own / "notes").mkdir()
    (own / "here").mkdir()
    (own / "here" / "config.json").write_text("{}")
    monkeypatch.setattr(langchain_gemma_jax, "ChatGemmaJax", Model)
    monkeypatch.setattr(sys, "stdin", io.StringIO(piped))
    assert main(arguments) == 0
    assert capsys.readouterr().out.strip() == "Yes."
    assert heard[0] == model
    assert asked in heard[1]


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


def test_a_model_on_the_disk_is_deleted_when_somebody_says_so(own, capsys):
    folder = own / "hub" / "models--google--gemma-3-1b-it"
    (folder / "snapshots" / ("a" * 40)).mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("a" * 40)
    config = folder / "snapshots" / ("a" * 40) / "config.json"
    config.write_text('{"model_type": "gemma3_text"}')
    assert main(["models", "rm", "google/gemma-3-1b"]) == 1
    assert "Did you mean 'google/gemma-3-1b-it'?" in capsys.readouterr().err
    assert main(["models", "rm", "google/gemma-3-1b-it"]) == 2
    assert "when you say --yes" in capsys.readouterr().err
    board = StatusFile()
    board.show([replace(STATUS, name=str(config.parent))])
    assert main(["models", "rm", "google/gemma-3-1b-it", "--yes"]) == 2
    assert f"is in memory in process {os.getpid()}" in capsys.readouterr().err
    board.take_down()
    assert config.exists()
    with Terminal((80, 24)) as terminal:
        terminal.type("n\n")
        assert main(["models", "rm", "google/gemma-3-1b-it"]) == 1
    assert config.exists()
    assert main(["models", "rm", "google/gemma-3-1b-it", "--yes"]) == 0
    assert not folder.exists()


def test_status_files_of_other_versions_are_shown_as_such(own, capsys):
    boards = [StatusFile(), StatusFile(), StatusFile()]
    for board in boards:
        board.show([STATUS])
    texts = ('{"format": 99, "version": "7.0\\u001b[2J"}', '[{"name": "./a"}]', None)
    for file, text in zip(sorted((own / "running").glob("*.json")), texts, strict=True):
        if text is not None:
            with file.open("r+") as opened:  # the same file, which its engine holds
                opened.truncate(0)
                opened.write(text)
    assert main(["top"]) == 0
    top = capsys.readouterr().out
    assert main(["models"]) == 0
    for shown in (top, capsys.readouterr().out):
        assert f"process {os.getpid()}: its status was written by version 7.0" in " ".join(shown.split())
        assert "written by another version of this package" in " ".join(shown.split())
        assert "./a" in shown
        assert "\x1b" not in shown
    for board in boards:
        board.take_down()


def test_terminals_without_utf8_or_colours_get_what_they_can_show(own, monkeypatch):
    board = StatusFile()
    board.show([replace(STATUS, name="./größe\x1b]0;x\x07")])
    with Terminal((80, 24), "ascii") as terminal:
        assert main(["top", "--once"]) == 0
        assert "./gr??e?]0;x?" in terminal.take()
    monkeypatch.setenv("NO_COLOR", "1")
    with Terminal((80, 24)) as terminal:
        assert main(["top", "--times", "1"]) == 0
        assert "\x1b" not in terminal.raw
    board.take_down()


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


def test_bash_completes_verbs_and_options(own, capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out + (
        'try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gemma_jax; echo "${COMPREPLY[@]}"; }\n'
        "try gemma-jax mo; try gemma-jax cache v; try gemma-jax run --sch; try gemma-jax models rm --y\n"
    )
    ended = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    assert ended.stdout.split("\n")[:4] == ["models", "verify", "--schema", "--yes"]


def test_printable_keeps_words_and_drops_what_steers():
    assert output.printable("größe\t1\n\x1b[2J\x07\u202e") == "größe\t1\n�[2J��"
    assert output.fitted("a\nbcdefgh", 6) == "a b..."


@pytest.mark.long
def test_a_server_that_says_nothing_errs_or_is_gone(own, monkeypatch):
    monkeypatch.setattr(mcp_server, "CALL_SECONDS", 0.2)
    server = f"{sys.executable} server.py"
    with McpServer(server) as found:
        assert found.tools[0]["function"]["name"] == "add"
        assert found.call("add", {"a": 1, "b": 2}) == "3"
        with pytest.raises(InputError, match=r"^1$"):
            found.call("add", {"a": -1, "b": 2})
        with pytest.raises(InputError, match=r"ended before it answered tools/call\. It wrote: .*KeyError"):
            found.call("add", {})
        with pytest.raises(InputError, match="ended before"):
            found.call("add", {"a": 1, "b": 2})
    (own / "slow.py").write_text(SERVER.replace("given = asked", "import time; time.sleep(600); given = asked"))
    with McpServer(f"{sys.executable} slow.py") as found:
        with pytest.raises(InputError, match="said nothing to tools/call within"):
            found.call("add", {"a": 1, "b": 2})
        monkeypatch.setattr(mcp_server, "END_SECONDS", 0.2)
    with pytest.raises(ProcessLookupError):
        os.kill(found._process.pid, 0)
    monkeypatch.setattr(mcp_server, "START_SECONDS", 0.3)
    with pytest.raises(InputError, match="said nothing to initialize"):
        McpServer(f"{sys.executable} -c 'import time; time.sleep(600)'")


def test_a_failing_tool_is_told_to_the_model_and_names_are_unique(own):
    (own / "bad.py").write_text('def f(x: int) -> int:\n    """Divide."""\n    return 1 // x\n')
    with Toolbox(["bad.py"], []) as box:
        assert box.call("f", {"x": 0}) == ("Error: ZeroDivisionError: integer division or modulo by zero", False)
        assert box.call("f", {"x": 1}) == ("1", True)
        assert box.call("g", {})[1] is False
    with pytest.raises(InputError, match="two tools named 'f'"):
        Toolbox(["bad.py", "bad.py"], [])


def headed(architecture):
    """A GGUF file that says no more than what it is."""
    known = [] if architecture is None else [("general.architecture", 8, gguf_file.text(architecture))]
    return gguf_file.container([gguf_file.entry(*each) for each in known])


def test_gguf_files_of_other_programs_are_listed(own, monkeypatch, capsys):
    monkeypatch.setenv("OLLAMA_MODELS", str(own / "ollama"))
    monkeypatch.setenv("LLAMA_CACHE", str(own / "llama"))
    store = Store(own / "ollama")
    for name, architecture in (("gemma3/4b", "gemma3"), ("llama3/8b", "llama"), ("broken/x", None)):
        store.add(f"registry.ollama.ai/library/{name}", headed(architecture))
    (own / "llama").mkdir()
    (own / "llama" / "g-Q8_0.gguf").write_bytes(headed("gemma\x1b[2J"))
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    assert "  ollama:gemma3:4b " in shown
    assert "gemma3, Ollama\n" in shown
    assert "g-Q8_0.gguf" in shown
    assert "and 2 of other families" in shown
    assert "llama3" not in shown
    assert "\x1b" not in shown


@pytest.mark.slow
def test_what_packing_costs_is_measured_on_a_text(own, monkeypatch, capsys):
    (own / "page.txt").write_text("The weather in Oslo is sunny. " * 8)
    assert main(["compare", "sprout-s", "--text", "page.txt", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    dense, eight, four = found["results"]
    assert [each["weights"] for each in found["results"]] == [None, "int8", "int4"]
    assert dense["tokens"] == four["tokens"] > 50
    assert dense["bytes"] > eight["bytes"] > four["bytes"]
    assert abs(eight["loss"] / dense["loss"] - 1) < 0.02
    assert eight["agreement"] > 0.9
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((own / "page.txt").read_bytes())))
    assert main(["compare", "sprout-s", "--weights", "int8", "--text", "-"]) == 0
    shown = capsys.readouterr().out
    assert f"{dense['tokens']:,} tokens" in shown
    assert "of the places" in shown
    assert "int4" not in shown
