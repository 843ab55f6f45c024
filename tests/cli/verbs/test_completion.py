"""Verbs and options that a shell completes."""

from __future__ import annotations

import subprocess

from langchain_gemma_jax.cli.command import main


def test_bash_completes_verbs_and_options(own, capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out + (
        'try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gemma_jax; echo "${COMPREPLY[@]}"; }\n'
        "try gemma-jax mo; try gemma-jax cache v; try gemma-jax run --sch; try gemma-jax models rm --y\n"
    )
    ended = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    assert ended.stdout.split("\n")[:4] == ["models", "verify", "--schema", "--yes"]
