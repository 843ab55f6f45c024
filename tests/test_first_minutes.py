"""The pages for users of other packages: their first minutes can be run, and ``scripts/first_minutes.py`` does."""

from __future__ import annotations

import faulthandler
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import first_minutes
from scripts.first_minutes import PAGES, adapted, commands_of, main, prepare


@pytest.mark.parametrize("page", PAGES)
def test_a_page_goes_from_an_empty_environment_to_an_answer(page, tmp_path):
    first, second, *others = commands_of(page)
    assert first.startswith("python3 -m venv .venv")
    assert second.startswith("pip install ")
    assert "/tmp/a.whl" in adapted(second, Path("/tmp/a.whl"))  # and not what the registry has
    model = tmp_path / "a.gguf"
    model.write_bytes(b"GGUF")
    environment = prepare(page, tmp_path / "place", model)
    assert environment["HOME"].startswith(str(tmp_path))
    if any("my_program.py" in each for each in others):
        compile((tmp_path / "place" / "my_program.py").read_text(), "my_program.py", "exec")


def test_a_model_that_is_not_there_is_said(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["--model", str(tmp_path / "none.gguf")])
    assert "scripts/real --fetch" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_they_run_from_an_empty_environment():
    if not first_minutes.REAL.is_file():
        pytest.skip("no real model: scripts/real --fetch")
    faulthandler.cancel_dump_traceback_later()  # it may take longer than the limit of one test, which ends the process
    script = Path(first_minutes.__file__)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if line[:1] != " "] == list(PAGES)
