"""The command: what it prints, what it returns, and what it leaves on the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from langchain_gemma_jax import __version__
from langchain_gemma_jax.cli.command import main

ROOT = Path(__file__).parents[2]


def test_errors_are_one_line_and_a_status(monkeypatch, capsys):
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", "not/absolute")
    assert main(["cache", "ls"]) == 2
    assert capsys.readouterr().err.startswith("gemma-jax: GEMMA_JAX_COMPILE_CACHE: expected")
    with pytest.raises(SystemExit):
        main([])
    with pytest.raises(SystemExit):
        main(["cache"])


def test_a_look_at_the_cache_needs_no_jax(root):
    verbs = (["cache", "ls"], ["cache", "ls", "--prefixes"], ["models"], ["top"], ["completion", "bash"])
    looks = "; ".join(f"main({verb})" for verb in verbs)
    script = f"import sys; from langchain_gemma_jax.cli.command import main; {looks}; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_it_says_which_release_it_is(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"gemma-jax {__version__}\n")


def test_the_command_is_installed_by_its_name():
    import tomllib

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"gemma-jax": "langchain_gemma_jax_command:main"}
