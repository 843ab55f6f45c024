"""Runs every command of the documentation where only the package is installed: ``python scripts/commands.py``.

A command is a line of a shell block of README.md or of a page. ``RULES`` say how it is run here: with the embedded
model in the place of one that would be downloaded, with something to read on its input, or not at all and why. One that
no rule knows is an error, so no command comes to a page without having been run. ``--list`` only says what it would do.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BASH = shutil.which("bash") or "bash"
FOLDER = Path.home().resolve() / ".cache" / "gemma-jax-commands"  # outside: pytest looks for settings in folders above
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
NOTE = re.compile(r"\s+#\s.*$")
MODEL = re.compile(r"google/gemma-[\w.-]+")
PORT, SOCKET = "port 8000", "the user's socket"
LONGEST_S, READY_S = 600.0, 120.0

OWN_RUN = "a target of its own, which runs by itself"
DOWNLOAD = "downloads from the Hub"
CLUSTER = "needs a cluster"
LARGE = "needs hardware, or downloads gigabytes"
SHELL = "sets up a shell, and says nothing"
FIRST_MINUTES = "scripts/first_minutes.py runs it"


@dataclass(frozen=True)
class Rule:
    """How commands of one form are run."""

    form: str  # a regular expression that the whole command matches
    why_not: str = ""  # the reason that it is not run, if it is not
    asks: bool = False  # it is run beside the page's last server
    fine: tuple[int, ...] = (0,)  # its exit status
    given: str = ""  # what it reads on its input
    serves: str = ""  # where it answers, a socket or a port; what follows on the page asks it, and then it has to end


RULES = (
    Rule(r"make (demo|test|bench.*|wheels|parity.*)", why_not=OWN_RUN),
    Rule(r"cp build/bench/.*", why_not=OWN_RUN),
    Rule(r"pip install ['\"]?(\.|langchain-gemma-jax)\[(cuda|tpu|gemma|ray|torchax)\]['\"]?", why_not=LARGE),
    Rule(r"pip install .*"),
    Rule(r"python3 -m venv .*"),
    Rule(r"gemma-jax chat.*", given="Hello!\n/quit\n"),
    Rule(r"git diff \| gemma-jax run .*"),
    Rule(r"echo .* \| gemma-jax run .*"),
    Rule(r"gemma-jax run ollama:.*", why_not=FIRST_MINUTES),
    Rule(r"gemma-jax run .*"),
    Rule(r"gemma-jax models"),
    Rule(r"gemma-jax top"),
    Rule(r"gemma-jax doctor.*"),
    Rule(r"gemma-jax bench --against .*", fine=(0, 1)),  # 1: this machine was slower than a minute ago
    Rule(r"gemma-jax (warmup|cache|compare|bench|profile) .*"),
    Rule(r"gemma-jax models pull .*", why_not=DOWNLOAD),
    Rule(r"gemma-jax completion fish \| source", why_not=SHELL),
    Rule(r"source <\(gemma-jax completion bash\)"),
    Rule(r"gemma-jax serve ollama:.*", why_not=FIRST_MINUTES),
    Rule(r"(OPENAI_\S+ )*python my_program\.py", why_not=FIRST_MINUTES),
    Rule(r"curl http://127\.0\.0\.1:11434/.*", why_not=FIRST_MINUTES),
    Rule(r"gemma-jax serve .*--port 8000( .*)?", serves=PORT),
    Rule(r"gemma-jax serve .*--open", serves=PORT),
    Rule(r"gemma-jax serve .*--host 0\.0\.0\.0 --api-key-file keys", serves=PORT),
    Rule(r"gemma-jax serve .*--prefix-(folder|peers) .*", why_not=CLUSTER),
    Rule(r"gemma-jax serve [\w/.-]+", serves=SOCKET),
    Rule(r"curl .*", asks=True),
    Rule(r"pytest --gemma-jax-report.*"),
    Rule(r"python examples/recipes/\w+\.py"),
    Rule(r"python -c \"import secrets.*"),
    Rule(r"\(umask 077; .*"),
    Rule(r"export .*", why_not=SHELL),
    Rule(r"serve run langchain_gemma_jax\.scale\.ray.*", why_not=LARGE),
    Rule(r"(podman|kubectl|head .* && kubectl) .*", why_not=CLUSTER),
)
FILES: Mapping[str, str] = {  # what the pages' commands read
    "keys": f"agents {'k' * 43}\n",
    "my_tools.py": 'def double(number: int) -> int:\n    "Double a number."\n    return 2 * number\n',
    "my_agent.py": (
        "from langchain_gemma_jax import ChatGemmaJax\n\nfor _ in range(5):\n"
        '    print(ChatGemmaJax(max_tokens=8).invoke("Hello!").text)\n'
    ),
    "my_page.txt": "A page of text, from which a model's loss is measured. " * 40,
    "prompt.txt": "You help with numbers. Call a tool if one fits, and answer in a sentence.\n",
    "test_nothing.py": "def test_nothing():\n    assert True\n",
    "weather_server.py": (
        f'import runpy, sys\n\nsys.argv[1:] = ["serve"]\n'
        f'runpy.run_path({str(ROOT / "examples" / "mcp_tools.py")!r}, run_name="__main__")\n'
    ),
}


def pages() -> list[Path]:
    """README.md and the pages."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(text: str) -> Iterator[str]:
    """The commands of a page's shell blocks, without the notes beside them."""
    for block in BLOCK.finditer(text):
        for line in block[1].splitlines():
            command = NOTE.sub("", line).strip()
            if command and not command.startswith("#"):
                yield command


def rule_of(command: str) -> Rule | None:
    """How a command is run; None if nobody has said."""
    return next((rule for rule in RULES if re.fullmatch(rule.form, command)), None)


def main() -> int:
    """Run all of them; the exit status is 1 if one failed."""
    parser = argparse.ArgumentParser(prog="scripts/commands.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="only say what would be done")
    parser.add_argument("--only", default="", metavar="TEXT", help="only commands with this in them")
    options = parser.parse_args()
    environment = {} if options.list else clean_environment()
    seen, failed = set[str](), list[str]()
    for page in pages():
        server = ""
        for command in commands(page.read_text()):
            rule = rule_of(command)
            server = command if rule is not None and rule.serves == PORT else server
            if command in seen or options.only not in command:
                continue
            seen.add(command)
            if rule is None:
                failed.append(command)
                said = "FAILED: expected a rule of scripts/commands.py, found none"
            elif rule.why_not or options.list:
                said = f"not run: {rule.why_not}" if rule.why_not else "to be run"
            else:
                asked = rule.asks
                problem = serve(server, PORT, environment, command) if asked else run(command, rule, environment)
                failed += [command] if problem else []
                said = f"FAILED: {problem}" if problem else "ran"
            print(f"{page.name}: {command}: {said}", flush=True)
    print(f"{len(seen)} commands, {len(failed)} failed")
    return 1 if failed else 0


def clean_environment() -> dict[str, str]:
    """A folder with nothing but what the commands read, and a fresh environment with the package in it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "home").mkdir(parents=True, mode=0o700)
    (FOLDER / "home" / ".config").mkdir()
    shutil.copytree(ROOT / "langchain_gemma_jax" / "models" / "sprout" / "sprout-s", FOLDER / "my-gemma")  # as saved
    for name, text in FILES.items():
        (FOLDER / name).write_text(text)
        (FOLDER / name).chmod(0o600)
    subprocess.run([BASH, "-c", f"git init -q {FOLDER}"], check=True)
    subprocess.run([sys.executable, "-m", "venv", FOLDER / "venv"], check=True)
    quiet = ["--quiet", "--disable-pip-version-check"]
    extras = f"{ROOT}[agents,serve,metrics]"
    subprocess.run([FOLDER / "venv" / "bin" / "python", "-m", "pip", "install", *quiet, extras, "pytest"], check=True)
    kept = {name: value for name, value in os.environ.items() if name in {"LANG", "PATH"}}
    path = f"{FOLDER / 'venv' / 'bin'}:{kept['PATH']}"
    return {
        **kept, "PATH": path, "HOME": str(FOLDER / "home"), "XDG_RUNTIME_DIR": str(FOLDER / "home"),
        "JAX_PLATFORMS": "cpu", "GEMMA_JAX_CACHE_DIR": str(FOLDER / "home" / "cache"), "TERM": "dumb",
    }  # fmt: skip


def adapted(command: str) -> str:
    """The command as it is run here: with the embedded model, this checkout, and on this machine alone."""
    here = MODEL.sub("sprout-s", command).replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - it is taken out
    here = here.replace("--max-context 8192", "--max-context 2048")  # as much as that model has
    here = here.replace("langchain-gemma-jax[", f"{ROOT}[").replace("'.[", f"'{ROOT}[")
    here = re.sub(r"^python examples/", f"python {ROOT / 'examples'}/", here)
    here = re.sub(r"^pip install \.", f"pip install {ROOT}", here)
    return here.replace("python3 -m venv .venv && . .venv", "python3 -m venv other && . other")


def run(command: str, rule: Rule, environment: Mapping[str, str]) -> str:
    """Run one command; give what went wrong, or nothing."""
    if rule.serves:
        return serve(command, rule.serves, environment)
    try:
        done = subprocess.run(
            [BASH, "-o", "pipefail", "-c", adapted(command)], cwd=FOLDER, env=environment, input=rule.given, text=True,
            capture_output=True, timeout=LONGEST_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it took longer than {LONGEST_S:.0f} s"
    return (
        ""
        if done.returncode in rule.fine
        else f"status {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}"
    )


def serve(command: str, where: str, environment: Mapping[str, str], question: str = "") -> str:
    """Start a server, wait until it answers, have a command ask it, and end it, all of which has to go well."""
    log = FOLDER / "server.txt"
    with log.open("w") as said:
        server = [BASH, "-c", f"exec {adapted(command)}"]
        process = subprocess.Popen(server, cwd=FOLDER, env=environment, stdout=said, stderr=said)
    try:
        until = time.monotonic() + READY_S
        while not answers(where, environment):
            if process.poll() is not None or time.monotonic() > until:
                return f"it did not answer: {log.read_text().strip()[-400:]}"
            time.sleep(0.5)
        problem = run(question, Rule(""), environment) if question else ""
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout=60)
        ended = "" if status in {0, -signal.SIGTERM} else f"status {status}: {log.read_text().strip()[-400:]}"
        return problem or ended
    finally:
        process.kill()
        process.wait()


def answers(where: str, environment: Mapping[str, str]) -> bool:
    """Return True if a server is there, and has its weights."""
    if where == SOCKET:
        python, asked = FOLDER / "venv" / "bin" / "python", 'ChatGemmaJax(server="auto", max_tokens=4).invoke("Hello!")'
        program = f"from langchain_gemma_jax import ChatGemmaJax; {asked}"
        return (
            subprocess.run([python, "-c", program], env=environment, capture_output=True, check=False).returncode == 0
        )
    connection = http.client.HTTPConnection("127.0.0.1", 8000, timeout=5)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
