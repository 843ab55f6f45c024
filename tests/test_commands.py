"""The commands of the documentation: ``scripts/commands.py`` knows each of them, and runs them."""

from __future__ import annotations

import faulthandler
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import commands
from scripts.commands import Rule, adapted, rule_of, run


def test_every_command_on_the_pages_has_a_rule():
    found = {(page.name, command) for page in commands.pages() for command in commands.commands(page.read_text())}
    assert ("README.md", "make demo") in found
    assert {each for each in found if rule_of(each[1]) is None} == set()


def test_commands_are_those_of_shell_blocks_without_their_notes():
    text = "`make lint`\n```sh\nmake demo   # an agent\n# a remark\n\npip install '.[a]'\n```\n```python\nx = 1\n```\n"
    assert list(commands.commands(text)) == ["make demo", "pip install '.[a]'"]


def test_a_model_that_would_be_downloaded_is_the_embedded_one_and_servers_stay_on_this_machine():
    assert (
        adapted("gemma-jax serve google/gemma-4-E4B-it --host 0.0.0.0") == "gemma-jax serve sprout-s --host 127.0.0.1"
    )
    assert adapted("python examples/agent.py") == f"python {commands.ROOT}/examples/agent.py"
    assert adapted("pip install '.[serve]'") == f"pip install '{commands.ROOT}[serve]'"


@pytest.mark.long
def test_what_fails_or_takes_too_long_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "FOLDER", tmp_path)
    monkeypatch.setattr(commands, "LONGEST_S", 1.0)
    environment = {"PATH": "/usr/bin:/bin"}
    assert run("read line && test $line = Hello", Rule("", given="Hello\n"), environment) == ""
    assert run("echo it fell over >&2; exit 3", Rule(""), environment) == "status 3: it fell over"
    assert run("false | true", Rule(""), environment).startswith("status 1")
    assert "longer than 1 s" in run("sleep 60", Rule(""), environment)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_all_of_them_run_where_only_the_package_is_installed():
    faulthandler.cancel_dump_traceback_later()  # it may take longer than the limit of one test, which ends the process
    script = Path(commands.__file__)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    failed = [line for line in done.stdout.splitlines() if "FAILED" in line]
    assert (done.returncode, failed) == (0, []), done.stderr
