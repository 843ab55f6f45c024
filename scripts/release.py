"""Makes a release in ``dist`` and tries it where nothing else is installed: ``make release``, from a clean clone.

The release has the wheels and the source distribution of ``scripts/build``, a bill of materials, the benchmark report,
the notes of CHANGELOG.md and the checksums of all of them. Then each Python gets an empty environment with the wheel,
where ``gemma-jax`` has to answer and an agent has to call a tool. The source distribution is installed once, with the
versions of the container image. The notes end with what could not be built or tried.

All of it is made in ``build/release``. ``dist`` is replaced at the end, so a release that failed leaves it as it was.
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
from langchain_gemma_jax.kernels.build import NOTE, TARGETS
from langchain_gemma_jax.models.configuration.embedded import EMBEDDED

ROOT = Path(__file__).parents[1]
DIST, WORK, TOOLS = ROOT / "dist", ROOT / "build" / "release", ROOT / ".envs" / "release"
MADE = WORK / "dist"
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


def refuse_other_tag(root: Path, version: str) -> None:
    """Make sure that the version is not the one of an earlier commit.

    Raises:
        ReleaseError: it is.
    """
    commit = _output(["git", "rev-parse", "HEAD"], cwd=root).strip()
    tagged = _output(
        ["git", "for-each-ref", "--format=%(objectname) %(*objectname)", f"refs/tags/v{version}"], cwd=root
    )
    if tagged and commit not in tagged.split():
        raise ReleaseError(
            f"expected a version that was not released, found the tag v{version} at {tagged.split()[-1]}. Set the next"
            " one in langchain_gemma_jax/__init__.py, or check that tag out."
        )


def target_here(targets: Sequence[str]) -> str:
    """Return the target for this machine, whose wheel is tried and whose installation is in the bill of materials.

    Raises:
        ReleaseError: there is none, or its wheel was not asked for.
    """
    machine = (platform.machine(), sys.platform)
    for name, target in TARGETS.items():
        if (target.machine, target.system) == machine and name in (targets or TARGETS):
            return name
    raise ReleaseError(
        f"expected the wheel for this machine ({', '.join(machine)}) among those to build, found"
        f" {', '.join(targets or TARGETS)}. A release needs one wheel that can be tried: ask for it too, or use"
        " another machine."
    )


def pythons_here() -> dict[str, str]:
    """Return the interpreters to try the release with, by their versions.

    Raises:
        ReleaseError: there is none.
    """
    found = {each: python for each in PYTHONS if (python := python_of(each))}
    if not found:
        raise ReleaseError(f"expected a Python to try the release with, one of {', '.join(PYTHONS)}, found none.")
    return found


def python_of(version: str) -> str | None:
    """Return an interpreter of this version that runs: from PATH, where a name may be a stub, or one of pyenv's.

    Special builds, for which there is no jaxlib, have a letter behind their version, and do not count.
    """
    home = pwd.getpwuid(os.getuid()).pw_dir  # HOME may be another folder, as in tests
    pyenv = Path(os.environ.get("PYENV_ROOT", f"{home}/.pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}*/bin/python{version}")))]
    for candidate in filter(None, candidates):
        check = [candidate, "-c", "import sys, venv; sys.exit(bool(sys.abiflags))"]
        if subprocess.run(check, check=False, capture_output=True).returncode == 0:
            return candidate
    return None


# What is in it.


def wheel_for(target: str, files: Iterable[Path]) -> Path:
    """Return the wheel of a target."""
    return next(path for path in files if path.suffix == ".whl" and TARGETS[target].wheel in path.name)


def bill_of_materials(python: Path, version: str, into: Path) -> None:
    """Write what an installation has, with versions and licenses, in CycloneDX's format.

    The distributions are those of the environment. Its tool does not see what is inside the wheel: that is added.
    """
    options = ["--pyproject", ROOT / "pyproject.toml", "--mc-type", "library", "--output-reproducible", "--of", "JSON"]
    _output([_in(TOOLS, "cyclonedx-py"), "environment", *map(str, options), "-o", str(into), str(python)])
    bill = json.loads(into.read_text(encoding="utf-8"))
    (note,) = python.parents[1].glob(f"lib/python*/site-packages/{NAME}/kernels/lib/{NOTE}")
    whole = bill["metadata"]["component"]
    whole |= {
        "version": version,
        "purl": f"pkg:pypi/{whole['name']}@{version}",
        "components": inside(version, json.loads(note.read_text(encoding="utf-8"))["compiler"]),
    }
    into.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")


def inside(version: str, compiler: str) -> list[dict[str, object]]:
    """Return the components of the wheel itself: the embedded models, and the C++ library in its kernels."""
    models: list[dict[str, object]] = [
        {
            "type": "machine-learning-model",
            "name": name,
            "version": version,
            "licenses": [{"license": {"id": "Apache-2.0"}}],
        }
        for name in EMBEDDED
    ]
    library: dict[str, object] = {
        "type": "library",
        "name": "libc++",
        "version": compiler,
        "description": "the C++ library that the compiler of this version links into the kernels",
        "licenses": [{"expression": "Apache-2.0 WITH LLVM-exception"}],
    }
    return [*models, library]


def sums(files: Iterable[Path]) -> str:
    """Return the checksums of files, as ``sha256sum --check`` reads them."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(files))


# Where it is tried.


def environment_with(python: str, what: Sequence[str], folder: Path) -> Path:
    """Make an environment with these requirements and what they need; give its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    # Without pip of its own, which would be in the bill of materials.
    _output([python, "-m", "venv", "--without-pip", str(folder)])
    made = Path(_in(folder, "python"))
    install(made, what)
    return made


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
    printed = _tried(python, [str(python), "-c", AGENT])
    try:
        said = json.loads(printed)
    except ValueError:
        raise ReleaseError(
            f"expected one line of JSON of an agent in {python.parents[1]}, found {printed!r}."
        ) from None
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
        installed = environment_with(python, [str(wheel)], WORK / number)
        answers(installed, version)  # before the extra is there
        if number == max(pythons, key=PYTHONS.index):
            bill_of_materials(installed, version, MADE / f"{NAME}-{version}.cdx.json")
        install(installed, [f"{NAME}[agents]=={version}"])
        trials.append(_said(Trial(wheel.name, calls_a_tool(installed))))
    return trials


def try_source(pythons: Mapping[str, str], source: Path, version: str) -> Trial:
    """Install the source distribution as ``deploy/Containerfile`` does: its extras, and its versions.

    Raises:
        ReleaseError: it does not work.
    """
    number, extras = image()
    pins = ["--constraint", str(ROOT / "deploy" / "constraints.txt")]
    installed = environment_with(pythons[number], [*pins, f"{NAME}[{extras}] @ {source.as_uri()}"], WORK / "source")
    answers(installed, version)
    install(installed, [*pins, f"{NAME}[agents]=={version}"])
    return _said(Trial(source.name, calls_a_tool(installed)))


def image() -> tuple[str, str]:
    """Return the Python of the container image and the extras that it installs."""
    arguments = dict(re.findall(r"^ARG (\w+)=(.*)$", (ROOT / "deploy" / "Containerfile").read_text(), re.MULTILINE))
    version = re.search(r"python:(\d+\.\d+)", arguments["PYTHON"])
    if version is None:
        raise ReleaseError(f"expected a version of Python in deploy/Containerfile, found {arguments['PYTHON']}.")
    return version[1], arguments["EXTRAS"]


def commit_of(root: Path) -> str:
    """Return the commit of a checkout, and whether there are changes to it."""
    changed = ", with changes that are not committed" if _output(["git", "status", "--porcelain"], cwd=root) else ""
    return _output(["git", "rev-parse", "HEAD"], cwd=root).strip() + changed


def ending(commit: str, files: Iterable[Path], trials: Sequence[Trial], missing: Sequence[str]) -> str:
    """Return what the notes say after the changes: what is in the release, where it ran, and where it did not."""
    listed = "\n".join(f"* `{path.name}`" for path in sorted(files))
    ran = "\n".join(f"* `{trial.what}`: {trial.ran_with}" for trial in trials)
    left = "\n".join(f"* {each}" for each in missing)
    return (
        f"### Files\n\nMade from commit {commit}. `sha256sum --check {SUMS}` checks them.\n\n{listed}\n\n"
        f"### Tried in empty environments\n\n{ran}\n\n### Not tried\n\n{left}\n"
    )


def untried(pythons: Iterable[str], wheels: Sequence[Path], tried: Path) -> list[str]:
    """Return a line for all that was not built or did not run here, with the reason."""
    left_out = [name for name, each in TARGETS.items() if not any(each.wheel in path.name for path in wheels)]
    absent = [each for each in PYTHONS if each not in pythons]
    source = f" (the source distribution is tried on {image()[0]})" if image()[0] in absent else ""
    return [
        *(f"Python {each}: there is none on PATH, and pyenv has none{source}" for each in absent),
        *(f"`{path.name}`: it is for another kind of machine" for path in sorted(wheels) if path != tried),
        *(f"{each}: its wheel was not asked for" for each in left_out),
        "Linux with musl, macOS on Intel and Windows: no wheel is built for them",
        "the container image: no image is built; the source distribution is tried with its Python packages",
    ]


def main() -> int:
    """Make the release; the exit status is 1 if it could not be made, or does not work."""
    parser = argparse.ArgumentParser(prog="make release", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", help=f"the wheels to build: {', '.join(TARGETS)}; by default all of them")
    parser.add_argument("--dirty", action="store_true", help="also with changes that are not committed: to try it out")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.targets) - set(TARGETS)):
        parser.error(f"expected targets among {', '.join(TARGETS)}, found {', '.join(unknown)}")
    version = langchain_gemma_jax.__version__
    try:
        text = notes_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
        report = report_of(ROOT, version)
        here, pythons = target_here(asked.targets), pythons_here()
        if not asked.dirty:
            refuse_changes(ROOT)
            refuse_other_tag(ROOT, version)
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        set_up_tools()
        build(version, report, asked.targets)
        try_and_describe(version, text, here, pythons)
        publish(MADE, DIST)
    except ReleaseError as error:
        print(f"make release: {error}", file=sys.stderr)
        return 1
    _say(f"{version} is in {DIST.relative_to(ROOT)}: {len(list(DIST.iterdir()))} files")
    return 0


def build(version: str, report: Path, targets: Sequence[str]) -> None:
    """Build the wheels and the source distribution, and pack the benchmark report.

    Raises:
        ReleaseError: a step failed.
    """
    _say("building the wheels and the source distribution")
    _output([str(ROOT / "scripts" / "build"), "--into", str(MADE), *targets])
    benchmarks, folder = MADE / f"benchmarks-{version}.tar.gz", str(report.relative_to(ROOT))
    _output(["git", "archive", "--format=tar.gz", f"--output={benchmarks}", "HEAD", folder])


def try_and_describe(version: str, notes: str, here: str, pythons: Mapping[str, str]) -> None:
    """Install what was built, and write the bill of materials, the notes and the checksums.

    Raises:
        ReleaseError: a step failed.
    """
    wheels = sorted(MADE.glob("*.whl"))
    (source,) = MADE.glob(f"{NAME}-*.tar.gz")
    wheel = wheel_for(here, wheels)
    trials = try_wheel(pythons, wheel, version)
    if image()[0] in pythons:
        trials.append(try_source(pythons, source, version))
    missing = untried(pythons, wheels, wheel)
    for each in missing:
        _say(f"not tried: {each}")
    end = ending(commit_of(ROOT), MADE.iterdir(), trials, missing)
    title = f"# {NAME.replace('_', '-')} {version}"
    (MADE / NOTES).write_text(f"{title}\n\n{notes}\n\n{end}", encoding="utf-8")
    (MADE / SUMS).write_text(sums(list(MADE.iterdir())), encoding="utf-8")


def set_up_tools() -> None:
    """Make the environment of the tools, if there is none with these versions.

    Raises:
        ReleaseError: it cannot be made, as without a network.
    """
    installed = TOOLS / ".installed"
    if installed.is_file() and installed.read_text(encoding="utf-8") == "\n".join(NEEDS):
        return
    _say(f"setting up {TOOLS.relative_to(ROOT)} (about 60 MB)")
    _output([sys.executable, "-m", "venv", "--clear", str(TOOLS)])
    _output([_in(TOOLS, "python"), "-m", "pip", "install", *QUIET, *NEEDS])
    installed.write_text("\n".join(NEEDS), encoding="utf-8")


def publish(made: Path, into: Path) -> None:
    """Put a whole release where the last one was."""
    shutil.rmtree(into, ignore_errors=True)
    made.rename(into)
    shutil.rmtree(made.parent)  # the environments, with which it was tried


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
        ReleaseError: it failed, or is not there.
    """
    try:
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ReleaseError(f"`{' '.join(command)}` cannot be run: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise ReleaseError(f"`{' '.join(command)}` ended with {done.returncode}: {said}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
