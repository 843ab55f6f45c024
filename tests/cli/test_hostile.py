"""Hostile shells, files and people: each gets a line and a status from the command, and never a traceback."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import DeleteCacheStrategy, constants

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.cli.tools.toolbox import Toolbox
from langchain_gemma_jax.cli.verbs import chat, run
from langchain_gemma_jax.engine.residency.status_file import StatusFile
from tests.cli.terminal import Terminal
from tests.engine.residency.test_status_file import STATUS

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("arguments", [["completion", "fish"], ["--help"], ["models", "--help"]])
def test_whoever_stops_reading_ends_the_command(arguments, monkeypatch, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out, (tmp_path / "err").open("w+") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        assert main(arguments) == 141
        assert (tmp_path / "err").read_text() == ""


def test_a_disk_that_is_full_is_said(monkeypatch, tmp_path):
    with Path("/dev/full").open("w") as out, (tmp_path / "err").open("w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        assert main(["completion", "fish"]) == 2
    assert (tmp_path / "err").read_text() == "gemma-jax: No space left on device\n"


def test_streams_may_be_closed(monkeypatch):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main(["models"]) == 0
    assert main(["run"]) == 2, "nothing was asked"
    for name in ("stdin", "stdout", "stderr"):
        getattr(sys, name).close()


def test_what_is_piped_in_need_not_be_text(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(run, "chat_model", lambda _: "a model")
    monkeypatch.setattr(run, "_stream", lambda model, messages, silent: asked.append(messages[-1][1]))
    for options in ([], ["What is \udcff?"]):  # the second: as Python hands on what is not text among arguments
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9 \xff"), encoding="utf-8"))
        assert main(["run", *options]) == 0
    assert asked == ["caf\ufffd \ufffd", "What is ??\n\ncaf\ufffd \ufffd"]
    monkeypatch.setattr(chat, "chat_model", lambda _: asked.clear())
    monkeypatch.setattr(chat.Conversation, "ask", lambda self, text: asked.append(text))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9\n\n/exit now\n"), encoding="utf-8"))
    assert main(["chat"]) == 0
    assert asked == ["caf\ufffd"]


def test_the_screen_is_given_back_to_whoever_ends_the_view():
    for number in (signal.SIGTERM, signal.SIGHUP):
        before = signal.getsignal(number)
        with Terminal((80, 24)) as terminal:
            threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
            with pytest.raises(SystemExit) as ended:
                main(["top", "--every", "0.05"])
            assert ended.value.code == 128 + number
            assert terminal.raw.endswith("\x1b[?25h\x1b[?1049l")
        assert signal.getsignal(number) is before


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (20, 3), (2000, 1000)])
def test_a_terminal_may_have_any_size(size):
    board = StatusFile()
    board.show([replace(STATUS, name="./模型" * 20)])
    with Terminal(size) as terminal:
        assert main(["top", "--times", "1"]) == 0
        shown = terminal.take()
    board.take_down()
    assert all(len(line.strip("\r")) <= size[0] for line in shown.split("\n"))


def test_numbers_of_a_status_that_cannot_be_are_not_shown(own, capsys):
    board = StatusFile()
    board.show([STATUS])
    (file,) = (own / "running").glob("*.json")
    whole = json.loads(file.read_text())
    (model,) = whole["models"]
    for wrong in (
        {"at": 1e999},
        {"at": 10**400},
        {"models": [model | {"nbytes": 10**400}]},
        {"models": [model | {"used_at": float("nan")}]},
        {"activity": whole["activity"] | {"tokens_per_s": float("inf")}},
        {"activity": whole["activity"] | {"trips": True}},
        {"models": {}, "activity": []},
    ):
        with file.open("r+") as opened:  # the same file, which its engine holds
            opened.truncate(0)
            opened.write(json.dumps(whole | wrong))
        for verb in (["top"], ["top", "--json"], ["models"]):
            assert main(verb) == 0
            shown = capsys.readouterr().out
            if "--json" in verb:
                (engine,) = json.loads(shown, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
                assert engine["readable"] is False
            else:
                assert "its status was written by" in shown, wrong
    board.take_down()


def test_nobody_deletes_a_model_by_leaving(own, monkeypatch, capsys):
    folder = own / "hub" / "models--google--gemma-3-1b-it"
    config = folder / "snapshots" / ("a" * 40) / "config.json"
    config.parent.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("a" * 40)
    config.write_text('{"model_type": "gemma3_text"}')
    with Terminal((80, 24)) as terminal:
        terminal.type("\x04")  # Ctrl-D
        assert main(["models", "rm", "google/gemma-3-1b-it"]) == 1
    assert config.exists()
    monkeypatch.setattr(DeleteCacheStrategy, "execute", lambda _: None)  # as where the folder is somebody else's
    assert main(["models", "rm", "google/gemma-3-1b-it", "--yes"]) == 1
    assert "could not be deleted" in capsys.readouterr().err
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(config))  # a file
    assert main(["models"]) == 2
    assert "The Hub's cache cannot be read" in capsys.readouterr().err


def test_tools_may_end_themselves_and_not_the_chat(own, capsys):
    (own / "script.py").write_text("import sys\nsys.exit(3)\n")
    assert main(["chat", "--tools", "script.py"]) == 2
    assert "script.py could not be run: SystemExit: 3" in capsys.readouterr().err
    (own / "tools.py").write_text('def leave() -> str:\n    """Leave."""\n    raise SystemExit("bye")\n')
    with Toolbox(["tools.py"], []) as box:
        assert box.call("leave", {}) == ("Error: SystemExit: bye", False)


def test_a_faulty_jax_is_said_by_every_verb_and_found_by_the_doctor(tmp_path):
    """With a JAX that is refused, nothing of the package can be imported."""
    listed = tmp_path / "jax-0.10.0.dist-info"
    listed.mkdir()
    (listed / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.10.0\n")
    script = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from langchain_gemma_jax_command import main\n"
        "for given in (['run', 'hello'], ['doctor'], ['doctor', '--json']):\n"
        "    sys.argv[1:] = given\n"
        "    print(main(), flush=True)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), str(ROOT)], check=True, capture_output=True, text=True
    )
    refused, *doctor, found, status = ended.stdout.splitlines()
    assert refused == "2"
    assert ended.stderr.startswith("gemma-jax: jax 0.10.0 cannot be used: ")
    assert "Traceback" not in ended.stderr
    assert doctor[0].startswith("bad   known faults: jax 0.10.0 cannot be used: ")
    assert "pip install --upgrade" in "\n".join(doctor)
    assert doctor[-1] == "1"
    assert json.loads(found)["verdict"] == "bad"
    assert status == "1"
