"""Runs a newcomer's first five minutes, and says how long they take: ``python scripts/first_minutes.py``.

Each page for those who come from elsewhere has a section with commands, from an empty environment to the first answer.
They are run as they are there, in a home folder of their own: only the package is a wheel of this checkout, and the
model a file that is here already. ``--wheel FILE`` takes a wheel that was built before.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.commands import BASH, commands  # noqa: E402 - a script finds its neighbors only now

PAGES = ("ollama", "openai", "transformers")
SECTION = "## In five minutes\n"
PROGRAM = re.compile(r"`my_program\.py`:\n\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
REAL = ROOT / "build" / "real" / "gemma-3-270m-Q4_K_M.gguf"
SPROUT = ROOT / "langchain_gemma_jax" / "models" / "sprout" / "sprout-s"
LONGEST_S, MOST_TOKENS = 600.0, 64


def commands_of(page: str) -> list[str]:
    """Return the commands of a page's first minutes."""
    _, found, rest = (ROOT / "docs" / f"{page}.md").read_text().partition(SECTION)
    if not found:
        raise SystemExit(f"docs/{page}.md: expected a section {SECTION.strip()!r}, found none")
    return list(commands(rest.partition("\n## ")[0]))


def prepare(page: str, folder: Path, model: Path) -> dict[str, str]:
    """Put what the page's reader has already into a folder, and return the environment there."""
    home = folder / "home"
    home.mkdir(parents=True, mode=0o700)
    if program := PROGRAM.search((ROOT / "docs" / f"{page}.md").read_text()):
        (folder / "my_program.py").write_text(program[1])
    if page == "transformers":
        shutil.copytree(SPROUT, folder / "my-gemma")
    if page == "ollama":
        fill_store(home / ".ollama" / "models", model)
    kept = {name: os.environ[name] for name in ("LANG", "PATH") if name in os.environ}
    return {**kept, "HOME": str(home), "XDG_RUNTIME_DIR": str(home), "JAX_PLATFORMS": "cpu", "TERM": "dumb"}


def fill_store(store: Path, model: Path) -> None:
    """Make a store of Ollama's that has a file as gemma3:4b."""
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    (store / "blobs").mkdir(parents=True)
    (store / "blobs" / f"sha256-{digest}").symlink_to(model.resolve())
    kind = "application/vnd.ollama.image."
    layers = [{"mediaType": f"{kind}model", "digest": f"sha256:{digest}", "size": model.stat().st_size}]
    manifest = store / "manifests" / "registry.ollama.ai" / "library" / "gemma3" / "4b"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))


def adapted(command: str, wheel: Path) -> str:
    """Return a command as it is run here: the package is the wheel, and answers end, as those of REAL never do."""
    here = re.sub(r"^pip install '?\.(\[\w+\])?'?", rf"pip install --quiet '{wheel}\1'", command)
    return re.sub(r"^(gemma-jax (?:run|serve) ollama:\S+)", rf"\1 --max-tokens {MOST_TOKENS}", here)


def run_page(page: str, wheel: Path, model: Path) -> list[tuple[str, float]]:
    """Run a page's commands; return each with its seconds.

    Raises:
        SystemExit: one failed.
    """
    with tempfile.TemporaryDirectory(prefix="first-minutes-") as place, contextlib.ExitStack() as servers:
        folder = Path(place)
        environment = prepare(page, folder, model)
        found = []
        for command in commands_of(page):
            begun = time.monotonic()
            if command.startswith("gemma-jax serve "):
                servers.enter_context(served(adapted(command, wheel), folder, environment))
            else:
                ask(command, adapted(command, wheel), folder, environment)
            found.append((command, time.monotonic() - begun))
            if command.startswith("python3 -m venv"):  # which is active from now on
                environment["PATH"] = f"{folder / '.venv' / 'bin'}:{environment['PATH']}"
        return found


def ask(command: str, here: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command that ends, which has to say something if it asks a model."""
    done = subprocess.run(
        [BASH, "-c", here], cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    silent = not command.startswith(("python3 -m venv", "pip ")) and not done.stdout.strip()
    if done.returncode or silent or (command.startswith("curl ") and '"error"' in done.stdout):
        raise SystemExit(f"{command}: status {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")


@contextlib.contextmanager
def served(command: str, folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Run a server until the block ends, which begins when it is ready."""
    port = re.search(r"--port (\d+)", command)
    if port is None:
        raise SystemExit(f"{command}: expected a --port, found none")
    log = folder / "server.txt"
    with log.open("w") as said:
        process = subprocess.Popen(
            [BASH, "-c", f"exec {command}"], cwd=folder, env=environment, stdout=said, stderr=said
        )
    try:
        until = time.monotonic() + LONGEST_S
        while not is_ready(int(port[1])):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{command}: it is not ready: {log.read_text().strip()[-2000:]}")
            time.sleep(0.2)
        yield
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()


def is_ready(port: int) -> bool:
    """Return True if a server at this port has its weights."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def built(folder: Path) -> Path:
    """Return a wheel of this checkout, built now."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", folder, ROOT], check=True)
    return next(folder.glob("*.whl"))


def main(arguments: list[str] | None = None) -> int:
    """Run the pages, and print how long each command took."""
    parser = argparse.ArgumentParser(prog="scripts/first_minutes.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"of {', '.join(PAGES)}; by default all")
    parser.add_argument("--wheel", type=Path, help="the package; by default it is built")
    parser.add_argument("--model", type=Path, default=REAL, help="the GGUF file that Ollama has")
    options = parser.parse_args(arguments)
    if unknown := set(options.pages) - set(PAGES):
        parser.error(f"expected some of {', '.join(PAGES)}, found {', '.join(sorted(unknown))}")
    if not options.model.is_file():
        parser.error(f"expected a GGUF file at {options.model}, found none: scripts/real --fetch brings it")
    with tempfile.TemporaryDirectory(prefix="first-minutes-") as place:
        wheel = (options.wheel or built(Path(place))).resolve()
        for page in options.pages or PAGES:
            found = run_page(page, wheel, options.model)
            print(f"{page}: {sum(seconds for _, seconds in found):.0f} s", flush=True)
            for command, seconds in found:
                print(f"  {seconds:6.1f} s  {command[:100]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
