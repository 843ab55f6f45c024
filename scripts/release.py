"""Makes a release in ``dist`` and tries it where nothing else is installed: ``make release``, from a clean clone.

The release has the wheels and the source distribution of ``scripts/build``, a bill of materials, the benchmark report,
the notes of CHANGELOG.md and the checksums of all of them. Then each Python gets an empty environment with the wheel,
where ``gemma-jax`` has to answer and an agent has to call a tool. The source distribution is installed once, with the
versions of the container image. What could not be built or tried is said, and is in the notes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import langchain_gemma_jax
from langchain_gemma_jax.config import KERNEL_VARIANTS
from langchain_gemma_jax.kernels.build import TARGETS

ROOT = Path(__file__).parents[1]
DIST, WORK, TOOLS = ROOT / "dist", ROOT / "build" / "release", ROOT / ".envs" / "release"
NAME = "langchain_gemma_jax"
NOTES, SUMS = "RELEASE-NOTES.md", "SHA256SUMS"
NEEDS = ("pip>=25", "cyclonedx-bom>=7.5,<8")
PYTHONS = ("3.11", "3.12", "3.13")
QUIET = ("--quiet", "--disable-pip-version-check")
AGENT = """
import json, platform

import jax
from langchain.agents import create_agent

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.kernels.library import kernels

def convert(miles: float) -> str:
    "Convert miles to kilometres."
    return f"{miles * 1.609344:.1f} km"

question = {"messages": [("user", "Convert 12 miles to kilometres.")]}
said = create_agent(ChatGemmaJax(temperature=0), [convert]).invoke(question)["messages"]
print(json.dumps({
    "calls": [[call["name"], call["args"]] for message in said for call in getattr(message, "tool_calls", ())],
    "results": [message.text for message in said if message.type == "tool"],
    "answer": said[-1].text,
    "kernels": kernels().variant,
    "with": f"Python {platform.python_version()}, JAX {jax.__version__}",
}))
"""


class ReleaseError(Exception):
    """The release cannot be made, or it does not work where it is installed. The message says what to do."""


@dataclass(frozen=True)
class Trial:
    """One environment in which the release was installed."""

    what: str  # the name of the file
    ran_with: str


# Before anything is built.


def notes_of(changelog: str, version: str) -> str:
    """Return a version's section of CHANGELOG.md, for readers who have no copy of the repository.

    Raises:
        ReleaseError: there is none, or it is empty.
    """
    found = re.search(
        rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if found is None or not found[1].strip():
        headings = ", ".join(re.findall(r"^## (.*)$", changelog, re.MULTILINE)[:3])
        raise ReleaseError(
            f"expected a section '## {version} - YEAR-MONTH-DAY' with text in CHANGELOG.md, found {headings}. Write it,"
            " or set __version__ in langchain_gemma_jax/__init__.py to the version that is released."
        )
    return re.sub(r"\[([^]]+)\]\((?!https?:)([^)]+)\)", r"\1 (`\2`)", found[1].strip())


def report_of(root: Path, version: str) -> Path:
    """Return the folder of a version's benchmark report.

    Raises:
        ReleaseError: nobody made one.
    """
    folder = root / "benchmarks" / "reports" / version
    if not (folder / "README.md").is_file():
        raise ReleaseError(
            f"expected the benchmark report of {version} in {folder.relative_to(root)}, found none. Make it on a quiet"
            f' machine, and commit it: make bench ARGS="--report {version}"'
        )
    return folder


def refuse_changes(root: Path) -> None:
    """Make sure that all files are as they were committed.

    Raises:
        ReleaseError: some are not.
    """
    changed = _output(["git", "status", "--porcelain"], cwd=root).splitlines()
    if changed:
        named = ", ".join(line[3:] for line in changed[:5]) + (", ..." if len(changed) > 5 else "")
        raise ReleaseError(
            f"expected a clean clone, found {len(changed)} files that are not committed: {named}. Commit them; or try"
            ' it as it is: make release ARGS="--dirty"'
        )


def python_of(version: str) -> str | None:
    """Return an interpreter of this version that runs: from PATH, where a name may be a stub, or one of pyenv's."""
    home = pwd.getpwuid(os.getuid()).pw_dir  # HOME may be another folder, as in tests
    pyenv = Path(os.environ.get("PYENV_ROOT", f"{home}/.pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}*/bin/python{version}")))]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", ""], check=False, capture_output=True).returncode == 0:
            return candidate
    return None


# What is in it.


def wheel_for(machine: str, system: str, files: Iterable[Path]) -> Path | None:
    """Return the wheel that runs on such a machine, if there is one."""
    tags = {target.wheel for target in TARGETS.values() if (target.machine, target.system) == (machine, system)}
    return next((path for path in files if path.suffix == ".whl" and any(tag in path.name for tag in tags)), None)


def bill_of_materials(python: Path, version: str, into: Path) -> None:
    """Write which distributions an environment has, with their versions and licenses, in CycloneDX's format."""
    described = (ROOT / "pyproject.toml").read_text().replace('dynamic = ["version"]', f'version = "{version}"')
    project = WORK / "pyproject.toml"
    project.write_text(described)
    options = ["--pyproject", project, "--mc-type", "library", "--output-reproducible", "--of", "JSON", "-o", into]
    _output([_in(TOOLS, "cyclonedx-py"), "environment", *map(str, options), str(python)])


def sums(files: Iterable[Path]) -> str:
    """Return the checksums of files, as ``sha256sum --check`` reads them."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(files))


# Where it is tried.


def environment_with(python: str, what: Sequence[str], folder: Path) -> Path:
    """Make an environment with these requirements and what they need; give its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    # Without pip of its own, which would be in the bill of materials.
    _output([python, "-m", "venv", "--without-pip", str(folder)])
    inside = Path(_in(folder, "python"))
    install(inside, what)
    return inside


def install(python: Path, what: Sequence[str]) -> None:
    """Install into an environment."""
    _output([_in(TOOLS, "python"), "-m", "pip", "--python", str(python), "install", *QUIET, "--no-compile", *what])


def answers(python: Path, version: str) -> None:
    """Have the command answer, in an environment with nothing but the package.

    Raises:
        ReleaseError: it did not.
    """
    command = _in(python.parents[1], "gemma-jax")
    said = _tried(python, [command, "--version"])
    if version not in said.split():
        raise ReleaseError(f"expected `gemma-jax --version` to say {version} in {python.parents[1]}, found {said!r}.")
    if not _tried(python, [command, "run", "Hello!"], PYTHONWARNINGS="error::DeprecationWarning").strip():
        raise ReleaseError(f"expected an answer of the embedded model in {python.parents[1]}, found none.")


def calls_a_tool(python: Path) -> str:
    """Have an agent call a tool; give what it ran with.

    Raises:
        ReleaseError: it did not.
    """
    said = json.loads(_tried(python, [str(python), "-c", AGENT]))
    if said["calls"] != [["convert", {"miles": 12}]] or said["results"] != ["19.3 km"] or not said["answer"]:
        raise ReleaseError(f"expected an agent in {python.parents[1]} to convert 12 miles and to answer, found {said}.")
    if said["kernels"] not in KERNEL_VARIANTS:
        raise ReleaseError(
            f"expected the kernels to run in {python.parents[1]}, found {said['kernels']}: gemma-jax doctor"
        )
    return f"{said['with']}, kernels for {said['kernels']}"


def try_wheel(pythons: Mapping[str, str], wheel: Path, version: str) -> list[Trial]:
    """Install the wheel in an empty environment of each Python, and write the bill of materials of the newest one.

    Raises:
        ReleaseError: it does not work in one of them.
    """
    trials = []
    for number, python in pythons.items():
        inside = environment_with(python, [str(wheel)], WORK / number)
        answers(inside, version)  # before the extra is there
        if number == max(pythons, key=PYTHONS.index):
            bill_of_materials(inside, version, DIST / f"{NAME}-{version}.cdx.json")
        install(inside, [f"{NAME}[agents]=={version}"])
        trials.append(_said(Trial(wheel.name, calls_a_tool(inside))))
    return trials


def try_source(pythons: Mapping[str, str], source: Path, version: str) -> Trial:
    """Install the source distribution as ``deploy/Containerfile`` does: its extras, and its versions.

    Raises:
        ReleaseError: it does not work.
    """
    number, extras = image()
    pins = ["--constraint", str(ROOT / "deploy" / "constraints.txt")]
    inside = environment_with(pythons[number], [*pins, f"{NAME}[{extras}] @ {source.as_uri()}"], WORK / "source")
    answers(inside, version)
    install(inside, [*pins, f"{NAME}[agents]=={version}"])
    return _said(Trial(source.name, calls_a_tool(inside)))


def image() -> tuple[str, str]:
    """Return the Python of the container image and the extras that it installs."""
    arguments = dict(re.findall(r"^ARG (\w+)=(.*)$", (ROOT / "deploy" / "Containerfile").read_text(), re.MULTILINE))
    version = re.search(r"python:(\d+\.\d+)", arguments["PYTHON"])
    if version is None:
        raise ReleaseError(f"expected a version of Python in deploy/Containerfile, found {arguments['PYTHON']}.")
    return version[1], arguments["EXTRAS"]


def ending(commit: str, files: Iterable[Path], trials: Sequence[Trial], missing: Sequence[str]) -> str:
    """Return what the notes say after the changes: what is in the release, where it ran, and where it did not."""
    listed = "\n".join(f"* `{path.name}`" for path in sorted(files))
    ran = "\n".join(f"* `{trial.what}`: {trial.ran_with}" for trial in trials)
    left = "\n".join(f"* {each}" for each in missing)
    return (
        f"### Files\n\nMade from commit {commit}. `sha256sum --check {SUMS}` checks them.\n\n{listed}\n\n"
        f"### Tried in empty environments\n\n{ran}\n\n### Not tried\n\n{left}\n"
    )


def untried(pythons: Iterable[str], wheels: Iterable[Path], tried: Path | None) -> list[str]:
    """Return a line for all that was not built or did not run here, with the reason."""
    absent = [each for each in PYTHONS if each not in pythons]
    source = f" (the source distribution is tried on {image()[0]})" if image()[0] in absent else ""
    return [
        *(f"Python {each}: there is none on PATH, and pyenv has none{source}" for each in absent),
        *(f"`{path.name}`: it is for another kind of machine" for path in sorted(wheels) if path != tried),
        "Linux with musl, macOS on Intel and Windows: no wheel is built for them",
        "the container image: no image is built; the source distribution is tried with its Python packages",
    ]


def main() -> int:
    """Make the release; the exit status is 1 if it could not be made, or does not work."""
    parser = argparse.ArgumentParser(prog="make release", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", help=f"the wheels to build: {', '.join(TARGETS)}; by default all of them")
    parser.add_argument("--dirty", action="store_true", help="also with changes that are not committed: to try it out")
    asked = parser.parse_args()
    version = langchain_gemma_jax.__version__
    try:
        text = notes_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
        report = report_of(ROOT, version)
        if not asked.dirty:
            refuse_changes(ROOT)
        make(version, text, report, asked.targets)
    except ReleaseError as error:
        print(f"make release: {error}", file=sys.stderr)
        return 1
    return 0


def make(version: str, notes: str, report: Path, targets: Sequence[str]) -> None:
    """Build the release, try it, and write what it is.

    Raises:
        ReleaseError: a step failed.
    """
    commit = _output(["git", "rev-parse", "HEAD"]).strip()
    _say("building the wheels and the source distribution")
    _output([str(ROOT / "scripts" / "build"), *targets])
    wheels = sorted(DIST.glob("*.whl"))
    (source,) = DIST.glob("*.tar.gz")
    benchmarks = DIST / f"benchmarks-{version}.tar.gz"
    _output(["git", "archive", "--format=tar.gz", f"--output={benchmarks}", "HEAD", str(report.relative_to(ROOT))])
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    if not Path(_in(TOOLS, "cyclonedx-py")).exists():
        _say(f"setting up {TOOLS.relative_to(ROOT)} (about 60 MB)")
        _output([sys.executable, "-m", "venv", "--clear", str(TOOLS)])
        _output([_in(TOOLS, "python"), "-m", "pip", "install", *QUIET, *NEEDS])
    wheel = wheel_for(platform.machine(), sys.platform, wheels)
    pythons = {each: python for each in PYTHONS if (python := python_of(each))}
    trials = try_wheel(pythons, wheel, version) if wheel else []
    trials += [try_source(pythons, source, version)] if image()[0] in pythons else []
    if not trials:
        raise ReleaseError(f"expected a Python to try the release with, one of {', '.join(PYTHONS)}, found none.")
    missing = untried(pythons, wheels, wheel)
    written = DIST / NOTES
    files = [path for path in DIST.iterdir() if path.name not in {NOTES, SUMS}]
    written.write_text(
        f"# {NAME.replace('_', '-')} {version}\n\n{notes}\n\n{ending(commit, files, trials, missing)}",
        encoding="utf-8",
    )
    (DIST / SUMS).write_text(sums([*files, written]), encoding="utf-8")
    for each in missing:
        _say(f"not tried: {each}")
    _say(f"{version} is in dist: {len(files) + 2} files")


def _said(trial: Trial) -> Trial:
    _say(f"{trial.what} answers and calls a tool with {trial.ran_with}")
    return trial


def _say(text: str) -> None:
    print(f"make release: {text}", flush=True)


def _in(environment: Path, program: str) -> str:
    return str(environment / "bin" / program)


def _tried(python: Path, command: Sequence[str], **settings: str) -> str:
    """Run a program of an environment: with none of this package's settings, in an empty home folder, on the CPU."""
    home = python.parents[1] / "home"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name in {"LANG", "PATH"}}
    return _output(command, env=kept | settings | {"HOME": str(home), "JAX_PLATFORMS": "cpu"}, cwd=home)


def _output(command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Run a command and give what it printed.

    Raises:
        ReleaseError: it failed.
    """
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise ReleaseError(f"`{' '.join(command)}` ended with {done.returncode}: {said}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
