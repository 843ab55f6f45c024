"""Says whether an upgrade of JAX is safe, for ``scripts/jax_upgrade``, which makes the two environments.

Four things run with both. *Goldens*: forward passes and answers beside numbers that the reference libraries gave, and
which are committed. *Parity*: the same beside the libraries themselves, where their answers are in build/parity
(``scripts/parity`` makes them). *Counts*: what a conversation costs, from ``scripts/gate.py``; the new ones may be 3 %
above the old ones at most. *Cold start*: a second process compiles nothing. What fails with the old JAX too is no
reason against the new one, and is told.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.gate import counts

ROOT = Path(__file__).parents[1]
PARITY = ROOT / "build" / "parity"
GOLDENS = ("tests/models/gemma", "tests/dialects/test_goldens.py", "tests/engine/test_reuse.py")
NEXT = ", in the next process"
BETTER_IF_MORE = {"tokens reused", f"programs from the disk{NEXT}"}


@dataclass(frozen=True)
class Looked:
    """The results of one version of JAX."""

    version: str
    goldens: bool
    parity: bool | None  # None: there is nothing to compare with
    counts: Mapping[str, float] | None  # None: the conversation failed
    said: str = ""  # the end of what failed


def look(python: str) -> Looked:
    """Run everything with the JAX of a Python."""
    version = run(python, "-c", "import jax; print(jax.__version__)")
    if version.returncode != 0:
        return Looked("?", goldens=False, parity=None, counts=None, said=version.stderr[-500:])
    name = version.stdout.strip()
    print(f"JAX {name}: goldens", flush=True)
    goldens = run(python, "-m", "pytest", "-q", "-x", "-m", "not slow", *GOLDENS)
    parity = None
    if any(PARITY.glob("*/*")):
        print(f"JAX {name}: parity", flush=True)
        references = [word for path in sorted(PARITY.iterdir()) for word in ("--reference", path.name)]
        parity = run(python, "-m", "tests.parity.compare", str(PARITY), *references)
    print(f"JAX {name}: counts, and a cold start", flush=True)
    try:
        counted, problem = counts(python), ""
    except RuntimeError as error:
        counted, problem = None, str(error)
    failed = [done.stdout[-1500:] for done in (goldens, parity) if done is not None and done.returncode != 0]
    return Looked(
        name,
        goldens.returncode == 0,
        None if parity is None else parity.returncode == 0,
        counted,
        "\n".join([*failed, *([problem] if problem else [])]),
    )


def run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run something with this Python, on the CPU."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    return subprocess.run([python, *arguments], cwd=ROOT, env=environment, check=False, capture_output=True, text=True)


def reasons(old: Looked, new: Looked) -> list[str]:
    """Return the reasons against the new version; none: go."""
    found = []
    if not new.goldens and old.goldens:
        found.append("goldens: answers differ from the committed ones, and did not before")
    if new.parity is False and old.parity is not False:
        found.append("parity: the forward pass differs from the reference's, and did not before")
    if new.counts is None:
        found.append("counts: a conversation fails")
        return found
    if new.counts[f"compiles{NEXT}"]:
        found.append(f"cold start: a second process compiles {new.counts[f'compiles{NEXT}']:g} programs")
    for name, after in new.counts.items():
        before = None if old.counts is None else old.counts.get(name)
        if before is None:
            continue
        worse = after < before * 0.97 if name in BETTER_IF_MORE else after > before * 1.03
        if worse and name != f"compiles{NEXT}":
            found.append(f"counts: {name}: {before:g} before, {after:g} now")
    return found


def told(old: Looked, new: Looked) -> str:
    """Return the verdict as text."""
    words = {True: "equal", False: "DIFFER", None: "no reference: scripts/parity"}
    lines = [f"{'':10}{old.version:>32}{new.version:>32}"]
    lines += [
        f"{name:10}{words[getattr(old, name)]:>32}{words[getattr(new, name)]:>32}" for name in ("goldens", "parity")
    ]
    against = reasons(old, new)
    if not old.goldens and not new.goldens:
        lines.append("Goldens differ with both: that is no reason against the new one, and a fault all the same.")
    lines += [f"  {reason}" for reason in against]
    without = " (parity was not compared)" if new.parity is None else ""
    lines.append(f"{'no' if against else 'go'}: JAX {new.version}{without}")
    return "\n".join(lines)


def main() -> int:
    """Look at both, and say "go" (0) or "no" (1)."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    old, new = (look(python) for python in sys.argv[1:])
    for each in (old, new):
        if each.said:
            print(f"\nJAX {each.version} said:\n{each.said}")
    print(told(old, new))
    return 1 if reasons(old, new) else 0


if __name__ == "__main__":
    sys.exit(main())
