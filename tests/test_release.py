"""``make release``: what it refuses, what its notes say, and that what it builds works where only it is installed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import langchain_gemma_jax
from scripts import release
from scripts.release import (
    DIST,
    NOTES,
    SUMS,
    TARGETS,
    ReleaseError,
    notes_of,
    python_of,
    report_of,
    target_here,
    untried,
    wheel_for,
)
from tests.test_words import refused

ROOT = Path(__file__).parents[1]
VERSION = langchain_gemma_jax.__version__
MOST_BYTES = 30e6
LEFT_OUT = ("tests", "training", "benchmarks", "docs", "examples")
CHANGELOG = """# Changelog

## Unreleased

## 1.2.0 - 2026-01-02

### Added

- See [a page](docs/serve.md#keys), and [another](https://example.com).

## 1.1.0 - 2025-01-01

### Added
"""


def test_the_notes_are_those_of_the_version_and_lead_nowhere_that_is_not_there():
    assert notes_of(CHANGELOG, "1.2.0") == (
        "### Added\n\n- See a page (`docs/serve.md#keys`), and [another](https://example.com)."
    )
    for absent in ("1.2", "1.3.0", "Unreleased"):
        with pytest.raises(ReleaseError, match=r"found Unreleased, 1\.2\.0 - 2026-01-02, 1\.1\.0"):
            notes_of(CHANGELOG, absent)
    with pytest.raises(ReleaseError, match="with text"):
        notes_of("## 1.2.0 - 2026-01-02\n\n## 1.1.0 - 2025-01-01\n\n- Old.\n", "1.2.0")


def test_this_release_has_notes_in_plain_words_and_a_report():
    notes = notes_of((ROOT / "CHANGELOG.md").read_text(), VERSION)
    assert refused(notes) == []
    assert notes.index("### Migrate from ") < notes.index("### Added")
    assert report_of(ROOT, VERSION).name == VERSION


def test_a_release_without_a_report_or_with_changes_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ReleaseError, match=r"make bench ARGS=\"--report 9\.9\.9\""):
        report_of(tmp_path, "9.9.9")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    (tmp_path / "kept").write_text("1")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    release.refuse_changes(tmp_path)
    (tmp_path / "kept").write_text("2")
    (tmp_path / "new").write_text("1")
    with pytest.raises(ReleaseError, match="found 2 files that are not committed: kept, new"):
        release.refuse_changes(tmp_path)
    assert release.commit_of(tmp_path).endswith(", with changes that are not committed")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReleaseError, match="`git status --porcelain` cannot be run"):
        release.refuse_changes(tmp_path)


@pytest.mark.parametrize("annotated", [(), ("-a", "-m", "a release")])
def test_a_version_is_released_once(tmp_path, annotated):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "1"], ["tag", *annotated, "v1.2.0"]):
        subprocess.run([*git, *command], check=True)
    release.refuse_other_tag(tmp_path, "1.2.0")  # the tag of this very commit
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "2"], check=True)
    release.refuse_other_tag(tmp_path, "1.2.1")
    with pytest.raises(ReleaseError, match=r"found the tag v1\.2\.0 at [0-9a-f]{40}\. Set the next one"):
        release.refuse_other_tag(tmp_path, "1.2.0")


@pytest.fixture
def folders(monkeypatch, tmp_path):
    """Folders of a test instead of the checkout's, with an earlier release, and nothing that is run."""
    for name, folder in {"ROOT": tmp_path, "DIST": tmp_path / "dist", "WORK": tmp_path / "work"}.items():
        monkeypatch.setattr(release, name, folder)
    monkeypatch.setattr(release, "MADE", tmp_path / "work" / "dist")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "earlier").touch()
    (tmp_path / "CHANGELOG.md").write_text((ROOT / "CHANGELOG.md").read_text())
    monkeypatch.setattr(release, "report_of", lambda root, version: root / version)
    monkeypatch.setattr(release, "set_up_tools", lambda: None)
    monkeypatch.setattr(release, "target_here", lambda targets: [*targets, "linux-x86_64"][0])
    return tmp_path


def test_nothing_is_built_before_all_that_it_needs_is_there(monkeypatch, capsys, folders):
    monkeypatch.setattr(release, "build", lambda *_: pytest.fail("built"))
    monkeypatch.setattr(release, "_output", lambda *_, **__: " M changed.py\n")
    monkeypatch.setattr(sys, "argv", ["release.py"])
    assert release.main() == 1
    assert "not committed: changed.py" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["release.py", "--dirty"])
    for name in ("notes_of", "report_of", "target_here", "pythons_here", "set_up_tools"):
        with monkeypatch.context() as patch:
            patch.setattr(release, name, refuse(f"no {name}"))
            assert release.main() == 1
            assert f"make release: no {name}" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["release.py", "--dirty", "linux-x86_65"])
    with pytest.raises(SystemExit):
        release.main()
    assert "found linux-x86_65" in capsys.readouterr().err


def test_a_release_that_fails_leaves_the_last_one_as_it_was(monkeypatch, folders):
    def built(version, report, targets):
        assert (version, report.name, targets) == (VERSION, VERSION, ["linux-x86_64"])
        release.MADE.mkdir()
        (release.MADE / "new").touch()

    monkeypatch.setattr(sys, "argv", ["release.py", "--dirty", "linux-x86_64"])
    monkeypatch.setattr(release, "build", built)
    monkeypatch.setattr(release, "pythons_here", dict)
    monkeypatch.setattr(release, "try_and_describe", refuse("it does not answer"))
    assert release.main() == 1
    assert [path.name for path in release.DIST.iterdir()] == ["earlier"]
    monkeypatch.setattr(release, "try_and_describe", lambda *_: None)
    assert release.main() == 0
    assert [path.name for path in release.DIST.iterdir()] == ["new"]
    assert not release.WORK.exists(), "nor do the environments stay"


def refuse(error: str) -> Callable[..., None]:
    def refusing(*_: object) -> None:
        raise ReleaseError(error)

    return refusing


def test_what_could_not_be_tried_is_in_the_notes():
    wheels = [Path(f"p-1-py3-none-{tag}.whl") for tag in ("macosx_11_0_arm64", "manylinux_2_17_x86_64")]
    assert wheel_for("linux-x86_64", wheels) == wheels[1]
    lines = untried(["3.11", "3.12"], wheels, wheels[1])
    assert lines[0].startswith("Python 3.13: there is none")
    assert "source distribution" in lines[0], "the image's Python is the missing one"
    assert lines[1] == "`p-1-py3-none-macosx_11_0_arm64.whl`: it is for another kind of machine"
    assert lines[2] == "linux-aarch64: its wheel was not asked for"
    assert not [line for line in lines if "x86_64" in line]
    text = release.ending("abc", wheels, [release.Trial("p.whl", "Python 3.11")], lines)
    assert all(f"* {line}\n" in text for line in lines)
    assert "* `p.whl`: Python 3.11\n" in text


@pytest.mark.parametrize("target", TARGETS)
def test_one_of_the_wheels_is_for_this_machine(target, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: TARGETS[target].machine)
    monkeypatch.setattr(sys, "platform", TARGETS[target].system)
    assert target_here([]) == target_here([*TARGETS]) == target
    with pytest.raises(ReleaseError, match=r"expected the wheel for this machine .* ask for it too"):
        target_here([name for name in TARGETS if name != target])
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(ReleaseError, match=r"this machine \(riscv64, "):
        target_here([])


def test_pythons_that_do_not_run_or_are_special_builds_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    made = {"path": "exit 127", "versions/3.99.0t/bin": "case $2 in *abiflags*) exit 1;; esac"}
    for folder, does in made.items():
        python = tmp_path / folder / "python3.99"
        python.parent.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\n{does}\n")
        python.chmod(0o755)
    assert python_of("3.99") is None
    monkeypatch.setattr(release, "PYTHONS", ("3.99",))
    with pytest.raises(ReleaseError, match=r"one of 3\.99, found none"):
        release.pythons_here()
    sound = tmp_path / "versions" / "3.99.1" / "bin" / "python3.99"
    sound.parent.mkdir(parents=True)
    sound.write_text("#!/bin/sh\n")
    sound.chmod(0o755)
    assert release.pythons_here() == {"3.99": str(sound)}


@pytest.mark.parametrize(
    ("differs", "wrong"),
    [({"calls": []}, "to convert 12 miles"), ({"answer": ""}, "to convert 12 miles"), ({"kernels": "off"}, "kernels")],
)
def test_what_does_not_work_where_it_is_installed_is_no_release(tmp_path, differs, wrong):
    good = {"calls": [["convert", {"miles": 12}]], "results": ["19.3 km"], "answer": "19.3 km"}
    good |= {"kernels": "avx2", "with": "Python"}
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    for said in (good, good | differs):
        python.write_text(f"#!/bin/sh\necho {shlex.quote(json.dumps(said))}\n")
        python.chmod(0o755)
        if said == good:
            assert release.calls_a_tool(python) == "Python, kernels for avx2"
    with pytest.raises(ReleaseError, match=wrong):
        release.calls_a_tool(python)
    python.write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    with pytest.raises(ReleaseError, match="ended with 1: broken"):
        release.calls_a_tool(python)
    python.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(ReleaseError, match="expected one line of JSON"):
        release.calls_a_tool(python)
    command = tmp_path / "bin" / "gemma-jax"
    command.write_text('#!/bin/sh\n[ "$1" = run ] || echo gemma-jax 9.9.9\n')
    command.chmod(0o755)
    with pytest.raises(ReleaseError, match=r"to say 1\.0"):
        release.answers(python, "1.0")
    with pytest.raises(ReleaseError, match="expected an answer"):
        release.answers(python, "9.9.9")


def test_the_image_is_that_of_this_release():
    """Its tag in every manifest and page; the source distribution has all that its recipe copies."""
    files = [*(ROOT / "deploy" / "kubernetes").rglob("*.yaml"), ROOT / "docs" / "kubernetes.md"]
    tags = {tag for path in files for tag in re.findall(r"gemma-jax:(\d[\d.]*\d)", path.read_text())}
    assert tags == {VERSION}
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", (ROOT / "deploy" / "Containerfile").read_text(), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    packed = {"pyproject.toml", *(path.lstrip("/") for path in project["include"])}
    assert {each.partition("/")[0] for line in copied for each in line.split()} - {"${FILES}"} <= packed


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.skipif((platform.machine(), sys.platform) != ("x86_64", "linux"), reason="no wheel made is tried here")
def test_a_release_is_made_and_tried_with_one_command():
    command = [sys.executable, "scripts/release.py", "--dirty", "linux-x86_64"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    name = f"langchain_gemma_jax-{VERSION}"
    files = {path.name: path for path in DIST.iterdir()}
    wheel, source = f"{name}-py3-none-manylinux_2_17_x86_64.whl", f"{name}.tar.gz"
    assert set(files) == {wheel, source, f"{name}.cdx.json", f"benchmarks-{VERSION}.tar.gz", NOTES, SUMS}
    assert all(path.stat().st_size <= MOST_BYTES for path in files.values())
    checked = dict(reversed(line.split()) for line in files[SUMS].read_text().splitlines())
    assert checked == {
        each: hashlib.sha256(path.read_bytes()).hexdigest() for each, path in files.items() if each != SUMS
    }
    notes = files[NOTES].read_text()
    assert "* linux-aarch64: its wheel was not asked for\n" in notes
    for version in release.PYTHONS:
        assert f"* `{wheel}`: Python {version}." in notes or f"* Python {version}: there is none" in notes
    if python_of(release.image()[0]):
        assert f"* `{source}`: Python {release.image()[0]}." in notes
    bill = json.loads(files[f"{name}.cdx.json"].read_text())
    root = bill["metadata"]["component"]
    assert root["purl"] == f"pkg:pypi/langchain-gemma-jax@{VERSION}"
    assert {part["name"] for part in root["components"]} == {"sprout-s", "sprout-m", "libc++"}
    assert all(part["version"] and part["licenses"] for part in root["components"])
    parts = {part["name"].lower(): part for part in bill["components"]}
    assert {"jax", "jaxlib", "langchain-core", "numpy", "tokenizers"} <= set(parts)
    assert not {"pip", "setuptools", "pytest", "langchain"} & set(parts), "what is not needed is not in it"
    assert all(part["version"] and part["purl"].startswith("pkg:pypi/") for part in parts.values())
    with tarfile.open(files[source]) as archive:
        inside = {each.partition("/")[2] for each in archive.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "LICENSE", "README.md", "CHANGELOG.md", "PKG-INFO"} <= inside
    assert {"langchain_gemma_jax/kernels/native/calls.cc", "deploy/Containerfile", "deploy/constraints.txt"} <= inside
    assert any(each.endswith("sprout-m/model.safetensors") for each in inside)
    assert not [each for each in inside if each.startswith(tuple(f"{folder}/" for folder in LEFT_OUT))]
    assert not [each for each in inside if each.endswith((".so", ".pyc"))]
