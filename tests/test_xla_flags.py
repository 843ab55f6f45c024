"""The tests ask jaxlib which of XLA's flags it knows, and say it when it cannot be asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from tests import xla_flags
from tests.xla_flags import QUICK_COMPILES, XlaFlagsNotReadError, as_users, known

ROOT = Path(__file__).parents[1]
NEVER_KNOWN = "--xla_a_flag_that_no_jaxlib_has=1"
ALWAYS_KNOWN = "--xla_backend_optimization_level=3"


@pytest.mark.long
def test_only_the_flags_that_this_jaxlib_knows_are_left():
    assert known((NEVER_KNOWN, ALWAYS_KNOWN, NEVER_KNOWN + "2")) == (ALWAYS_KNOWN,)
    assert known((ALWAYS_KNOWN,)) == (ALWAYS_KNOWN,)
    assert known(()) == ()


def test_the_flags_of_these_tests_are_known_ones(pytestconfig):
    quick = pytestconfig.getoption("markexpr").startswith("not slow")
    given = os.environ.get("XLA_FLAGS", "").split()
    assert tuple(given) == (known(QUICK_COMPILES) if quick else ())
    assert not quick or given  # at least one is known by every jaxlib that the package allows


@pytest.mark.parametrize(
    ("ask", "printed"),
    [
        ("import os, sys; sys.stderr.write('Illegal instruction here'); os.abort()", "Illegal instruction here"),
        ("print('something else')", "something else"),
    ],
)
def test_a_jaxlib_that_cannot_be_asked_is_said(monkeypatch, ask, printed):
    monkeypatch.setattr(xla_flags, "_ASK", ask)
    with pytest.raises(XlaFlagsNotReadError, match=printed) as caught:
        known((ALWAYS_KNOWN,))
    assert ALWAYS_KNOWN in str(caught.value)
    assert "import jax" in str(caught.value)  # what to try


def test_the_run_ends_with_that_on_the_screen_and_not_without_a_word(tmp_path):
    # A jaxlib that ends the process whatever it is asked, as one does over a flag that it does not know.
    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib" / "__init__.py").write_text("import os; os.write(2, b'not this flag'); os._exit(1)")
    command = [sys.executable, "-m", "pytest", "tests/test_config.py", "-q", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == pytest.ExitCode.INTERNAL_ERROR
    printed = ended.stdout + ended.stderr
    assert "The tests cannot start: jaxlib ended with status 1" in printed
    assert "not this flag" in printed
    assert "passed" not in printed


def test_one_compilation_may_be_as_users_have_it(monkeypatch):
    options = as_users()
    double = jax.jit(lambda value: value * 2, compiler_options=options)
    assert double(21.0) == 42
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")
    assert as_users() == {"xla_cpu_use_fusion_emitters": True}
    monkeypatch.setenv("XLA_FLAGS", "")
    assert as_users() == {}
