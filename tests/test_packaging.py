"""The installation: the wheel, its requirements, and the script that sets up a checkout."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import langchain_gemma_jax

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "langchain_gemma_jax"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
REQUIRED = {canonicalize_name(Requirement(text).name) for text in PYPROJECT["project"]["dependencies"]}

# Imported only with the extra of that name.
OPTIONAL = {
    "cryptography", "deepagents", "gemma", "langchain", "opentelemetry", "pil", "prometheus-client", "pypdfium2",
    "pytest", "ray", "soundfile", "torch", "torchax", "transformers", "uvicorn",
}  # fmt: skip
FAR_TOO_HEAVY = {"torch", "tensorflow", "tensorflow-cpu", "keras", "transformers", "pandas", "scikit-learn", "gemma"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # kernels are compiled
    (path,) = folder.iterdir()
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def wheel_metadata(wheel) -> Message:
    (path,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return HeaderParser().parsestr(wheel.read(path).decode())


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    sources = {str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert held == sources | {"langchain_gemma_jax_command.py", "langchain_gemma_jax_pytest.py"}
    assert "langchain_gemma_jax/py.typed" in held


def test_the_wheel_stays_small_with_its_models_in_it(wheel):
    assert any(name.endswith("sprout-m/model.safetensors") for name in wheel.namelist())
    assert Path(wheel.filename).stat().st_size <= 25e6


def test_the_wheel_says_what_it_is(wheel, wheel_metadata):
    assert wheel_metadata["Name"] == "langchain-gemma-jax"
    assert wheel_metadata["Version"] == langchain_gemma_jax.__version__
    assert wheel_metadata["License-Expression"] == "Apache-2.0"
    assert wheel_metadata["Requires-Python"] == ">=3.11"
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_the_extras_are_there(wheel_metadata):
    assert set(wheel_metadata.get_all("Provides-Extra")) == {
        "agents",
        "cuda",
        "tpu",
        "gemma",
        "metrics",
        "otel",
        "ray",
        "serve",
        "encryption",
        "torchax",
        "media",
        "audio",
        "pdf",
        "dev",
    }


def test_nothing_heavy_is_required_through_any_number_of_steps():
    environment = default_environment() | {"extra": ""}
    seen: set[str] = set()
    todo = set(REQUIRED)
    while todo:
        name = todo.pop()
        seen.add(name)
        requirements = [Requirement(text) for text in metadata.requires(name) or []]
        needed = {canonicalize_name(r.name) for r in requirements if not r.marker or r.marker.evaluate(environment)}
        todo |= needed - seen
    assert seen & FAR_TOO_HEAVY == set()
    assert len(seen) > len(REQUIRED)


def imported_distributions() -> set[str]:
    names: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module).partition(".")[0])
    names -= sys.stdlib_module_names | {PACKAGE.name}
    return {canonicalize_name(name) for name in names}  # the two happen to agree for all that is required


def test_what_is_imported_is_required():
    assert imported_distributions() - REQUIRED - OPTIONAL == set()


def test_what_is_required_is_imported():
    assert imported_distributions() >= REQUIRED


def test_the_changelog_begins_with_what_is_not_released():
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert headings[0] == "## Unreleased"
    released = [heading.split()[1] for heading in headings[1:]]
    if "dev" not in langchain_gemma_jax.__version__:
        assert released[0] == langchain_gemma_jax.__version__


# scripts/setup, in a copy of the project and with stand-ins for Python.


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose PATH holds nothing but the tools of a bare machine, and whatever a test adds."""

    class Checkout:
        folder = tmp_path / "checkout"
        bin = tmp_path / "bin"
        log = tmp_path / "log"

        def add_python(self, name: str, version: tuple[int, int], flags: str = "", folder: Path | None = None) -> None:
            """A stand-in that knows its version, makes environments of stand-ins, and notes what pip was told."""
            number = ".".join(map(str, version)) + flags
            folder = folder or self.bin
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(
                f"""#!/bin/sh
case "$*" in
    --version) echo "Python {number}" ;;
    "-m venv --clear "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" && echo "$4 {name}" >>"{self.log}" ;;
    "-m pip install "*) echo "install" >>"{self.log}" ;;
    -c*version_info\\ \\<*) exit {int(version < (3, 11))} ;;
    -c*) echo {number} ;;
esac
"""
            )
            (folder / name).chmod(0o755)

        def add_stub(self, name: str) -> None:
            """As pyenv has one on PATH for each version that is not chosen."""
            (self.bin / name).write_text("#!/bin/sh\necho pyenv: command not found >&2\nexit 127\n")
            (self.bin / name).chmod(0o755)

        def set_up(self, *version: str, **environment: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [str(self.folder / "scripts" / "setup"), *version],
                env={"PATH": str(self.bin), **environment},
                capture_output=True,
                text=True,
                check=False,
            )

        def done(self) -> list[str]:
            return self.log.read_text().splitlines() if self.log.exists() else []

    (Checkout.folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "setup", Checkout.folder / "scripts")
    shutil.copy(ROOT / "pyproject.toml", Checkout.folder)
    Checkout.bin.mkdir()
    for tool in ("sh", "cat", "cksum", "cp", "dirname", "mkdir"):
        (Checkout.bin / tool).symlink_to(shutil.which(tool) or tool)
    return Checkout()


def test_set_up_uses_python3_and_works_once(checkout):
    checkout.add_python("python3", (3, 11))
    checkout.add_python("python3.13", (3, 13))
    assert [checkout.set_up().returncode for _ in range(2)] == [0, 0]
    assert checkout.done() == [".venv python3", "install"]


def test_set_up_looks_further_where_python3_is_old(checkout):
    checkout.add_python("python3", (3, 9))
    checkout.add_python("python3.12", (3, 12))
    assert checkout.set_up().returncode == 0
    assert checkout.done() == [".venv python3.12", "install"]


def test_set_up_says_what_is_missing(checkout):
    checkout.add_python("python3", (3, 10))
    result = checkout.set_up()
    assert result.returncode == 1
    assert "Python 3.11 or newer is needed. Found: Python 3.10" in result.stderr
    assert checkout.done() == []


def test_set_up_takes_the_interpreter_that_it_is_given(checkout):
    checkout.add_python("python3", (3, 11))
    checkout.add_python("python3.13", (3, 13))
    checkout.set_up()
    assert checkout.set_up(PYTHON="python3.13").returncode == 0
    assert checkout.done() == [".venv python3", "install", ".venv python3.13", "install"]


def test_set_up_does_not_replace_an_interpreter_that_was_asked_for(checkout):
    checkout.add_python("python3", (3, 11))
    assert checkout.set_up(PYTHON="python3.99").returncode == 1
    assert checkout.done() == []


def test_set_up_installs_again_when_the_requirements_change(checkout):
    checkout.add_python("python3", (3, 11))
    checkout.set_up()
    with (checkout.folder / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert checkout.set_up().returncode == 0
    assert checkout.done() == [".venv python3", "install", "install"]


def test_set_up_does_not_count_an_installation_that_failed(checkout):
    checkout.add_python("python3", (3, 11))
    fake = checkout.bin / "python3"
    fake.write_text(fake.read_text().replace('echo "install"', 'exit 1; echo "install"'))
    failed = checkout.set_up()
    assert failed.returncode == 1
    assert "takes pip and a network once" in failed.stderr
    assert not (checkout.folder / ".venv" / ".installed").exists()
    asked = checkout.set_up("3.11")
    assert (asked.returncode, asked.stdout) == (1, ""), "whoever asked goes on without it"


def test_set_up_says_what_is_missing_without_venv(checkout):
    checkout.add_python("python3", (3, 11))
    fake = checkout.bin / "python3"
    fake.write_text(fake.read_text().replace('mkdir -p "$4/bin" && cp "$0" "$4/bin/python"', "exit 1"))
    failed = checkout.set_up()
    assert failed.returncode == 1
    assert "this Python lacks venv or pip" in failed.stderr


def test_set_up_goes_on_without_a_compiler_and_says_so(checkout):
    checkout.add_python("python3", (3, 11))
    fake = checkout.bin / "python3"
    note = checkout.folder / "langchain_gemma_jax" / "kernels" / "lib" / "kernels.json"
    note.parent.mkdir(parents=True)
    note.touch()
    fake.write_text(fake.read_text().replace("\n    -c*) echo", '\n    -c*why*) echo "no c++" ;;\n    -c*) echo'))
    done = checkout.set_up()
    assert done.returncode == 0
    assert "There is no compiler, so kernels are left out" in done.stderr
    assert "(no c++)" in done.stderr


def test_set_up_makes_several_side_by_side(checkout):
    checkout.add_python("python3", (3, 11))
    checkout.add_python("python3.13", (3, 13))
    assert checkout.set_up().returncode == 0
    told = [checkout.set_up(version) for version in ("3.13", "3.11", "3.13")]
    assert [each.stdout for each in told] == [".venv-3.13\n", ".venv\n", ".venv-3.13\n"]  # and nothing but that
    assert checkout.done() == [".venv python3", "install", ".venv-3.13 python3.13", "install"]


def test_set_up_finds_a_version_under_any_name_that_runs(checkout, tmp_path):
    pyenv, versions = tmp_path / "py env", tmp_path / "py env" / "versions"  # a name with a space
    checkout.add_python("python3", (3, 12))
    checkout.add_stub("python3.13")
    checkout.add_stub("pyenv")
    checkout.add_python("python3.13", (3, 13), "t", versions / "3.13.0" / "bin")  # no jaxlib for that build
    checkout.add_python("python3.13", (3, 13), folder=versions / "3.13.2" / "bin")
    checkout.add_python("python3.11", (3, 11), folder=tmp_path / "home" / ".pyenv" / "versions" / "3.11.9" / "bin")
    checkout.add_python("own", (3, 14), folder=tmp_path)
    assert checkout.set_up("3.12").stdout == ".venv-3.12\n"
    assert checkout.set_up("3.13", PYENV_ROOT=str(pyenv)).stdout == ".venv-3.13\n"
    assert checkout.set_up("3.11", HOME=str(tmp_path / "home")).stdout == ".venv-3.11\n"
    assert checkout.set_up("3.14", PYTHON=str(tmp_path / "own")).stdout == ".venv-3.14\n"
    made = [line for line in checkout.done() if line != "install"]
    assert made == [".venv-3.12 python3", ".venv-3.13 python3.13", ".venv-3.11 python3.11", ".venv-3.14 own"]
    assert checkout.set_up("3.13").returncode == 0  # it is there, whatever has become of where it came from
    assert checkout.done().count("install") == 4


def test_set_up_says_which_version_is_missing_and_what_to_do(checkout):
    checkout.add_python("python3", (3, 11))
    checkout.add_stub("python3.13")
    missing = checkout.set_up("3.13", HOME="/nowhere")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "Python 3.13 is wanted here." in missing.stderr
    assert "PYTHON=/path/to/python3.13" in missing.stderr
    assert [checkout.set_up(wrong).returncode for wrong in ("three", "3.13.1", "../3")] == [2, 2, 2]
    assert checkout.done() == []


def test_make_help_lists_every_target():
    result = subprocess.run(["make", "help"], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True)
    listed = {line.split()[1] for line in result.stdout.splitlines()}
    assert {"demo", "test", "lint", "parity", "bench"} <= listed
