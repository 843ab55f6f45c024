"""A faulty JAX is refused, whichever way the package is entered."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from langchain_gemma_jax.jax_check import FAULTS, SOUND, find_fault

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "langchain_gemma_jax"
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in PACKAGE.rglob("*.py")
)
FAULTY = ["0.4.38", "0.8.3", "0.9", "0.9.0.1", "0.9.1", "0.10.0", "0.10.1", "0.10.2", "0.11.1"]
SOUND_RELEASES = ["0.9.2", "0.11.0", "0.11.2", "0.12.0", "0.12.0.1", "1.0.0", "2.7"]


@pytest.fixture
def install(tmp_path):
    """Pretend that versions are installed, by metadata that is found before the true one."""

    def pretend(**versions: str) -> Path:
        for name, version in versions.items():
            folder = tmp_path / f"{name}-{version}.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        return tmp_path

    return pretend


def python(script: str, *flags: str, first_on_path: Path | str = "") -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(str(path) for path in (first_on_path, ROOT) if path)
    return subprocess.run(
        [sys.executable, *flags, "-c", dedent(script)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("version", FAULTY)
def test_faulty_releases_are_known(version):
    assert find_fault(version) is not None


@pytest.mark.parametrize("version", SOUND_RELEASES)
def test_sound_and_future_releases_pass(version):
    assert find_fault(version) is None


@pytest.mark.parametrize(
    "version", ["0.9.2.dev20260401", "0.12.1.dev20261101+3f2a", "0.12.0rc1", "v0.12.0", "0.13.0.dev0+selfbuilt"]
)
def test_builds_of_sound_releases_pass(version):
    assert find_fault(version) is None


@pytest.mark.parametrize("version", ["0.10.2.dev20260601", "0.11.1+cuda12.local", "0.10.3.dev1", "0.9.1rc2", " 0.10.2"])
def test_builds_of_faulty_releases_do_not(version):
    assert find_fault(version) is not None


@pytest.mark.parametrize("version", ["", "unknown", "main", "git-4f2c"])
def test_a_version_without_a_number_passes(version):
    assert find_fault(version) is None


def test_the_table_of_faults_and_the_requirement_say_the_same():
    pip_says = SpecifierSet(SOUND)
    for version in FAULTY + SOUND_RELEASES:
        assert pip_says.contains(version) == (find_fault(version) is None), version


def test_pyproject_requires_what_is_not_refused():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = {(parsed := Requirement(text)).name: parsed.specifier for text in project["dependencies"]}
    assert requirements["jax"] == requirements["jaxlib"] == SpecifierSet(SOUND)


def test_the_documentation_names_every_report():
    page = (ROOT / "docs" / "install.md").read_text()
    reports = re.findall(r"jax#\d+", " ".join(fault.what for fault in FAULTS))
    assert len(reports) == 3
    assert all(report in page for report in reports)


@pytest.mark.parametrize(
    ("package", "version", "fault"),
    [
        ("jax", "0.10.2", "jax#39103"),
        ("jaxlib", "0.10.2", "jax#39103"),
        ("jax", "0.10.1", "jax#39264"),
        ("jax", "0.11.1", "jax#40101"),
        ("jax", "0.8.0", "oldest release"),
    ],
)
def test_the_error_teaches(install, package, version, fault):
    result = python("import langchain_gemma_jax", first_on_path=install(**{package: version}))
    assert result.returncode == 1
    for part in (
        "UnsafeJaxError",
        f"{package} {version} cannot be used",
        fault,
        f'-m pip install --upgrade "jax{SOUND}"',
    ):
        assert part in result.stderr, part


@pytest.mark.long
def test_no_module_can_be_imported_with_a_faulty_jax(install):
    script = f"""
        import importlib, sys
        for module in {MODULES}:
            for leftover in [name for name in sys.modules if name.startswith("langchain_gemma_jax")]:
                del sys.modules[leftover]
            try:
                importlib.import_module(module)
            except RuntimeError as error:
                assert type(error).__name__ == "UnsafeJaxError", (module, error)
            else:
                raise SystemExit(module + " was imported")
        assert "jax" not in sys.modules
    """
    result = python(script, first_on_path=install(jax="0.10.2"))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("flags", [["-O"], ["-OO"]])
def test_the_check_is_not_an_assertion(install, flags):
    result = python("import langchain_gemma_jax", *flags, first_on_path=install(jax="0.10.2"))
    assert "UnsafeJaxError" in result.stderr


def test_a_jax_that_is_imported_already_is_checked_too():
    result = python(
        """
        import sys, types
        sys.modules["jax"] = types.ModuleType("jax")
        sys.modules["jax"].__version__ = "0.10.2"
        import langchain_gemma_jax
        """
    )
    assert "UnsafeJaxError: jax 0.10.2 cannot be used" in result.stderr


def test_sound_metadata_passes(install):
    result = python("import langchain_gemma_jax", first_on_path=install(jax="0.12.1.dev20261101", jaxlib="0.12.0.1"))
    assert result.returncode == 0, result.stderr


def test_damaged_metadata_is_not_taken_for_a_fault(tmp_path):
    (tmp_path / "jax-0.12.0.dist-info").mkdir()
    result = python("import langchain_gemma_jax", first_on_path=tmp_path)
    assert result.returncode == 0, result.stderr


def test_errors_are_importable_where_jax_is_not_installed():
    result = python("from langchain_gemma_jax.errors import UnsafeJaxError", "-S")  # -S: without site-packages
    assert result.returncode == 0, result.stderr


def test_a_failed_import_can_be_caught_and_tried_again(install):
    result = python(
        """
        for attempt in range(2):
            try:
                import langchain_gemma_jax
            except RuntimeError as error:
                print(type(error).__name__)
        """,
        first_on_path=install(jax="0.11.1"),
    )
    assert result.stdout.split() == ["UnsafeJaxError", "UnsafeJaxError"]
