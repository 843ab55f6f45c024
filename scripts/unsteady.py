"""Run the tests that failed once more, one after another, and name those that pass then.

    python -m pytest -n auto || python scripts/unsteady.py

A test that fails among others and passes by itself has a fault: it depends on time, or on something that another test
left. It has to be mended, but it says nothing about the commit at hand. So it is named here and in build/unsteady.txt,
and the run goes on. With more than three failures nothing runs again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 3  # failures of ten thousand tests


def main() -> int:
    """Return the exit status: 0 if each test that failed passes now."""
    kept = ROOT / ".pytest_cache/v/cache/lastfailed"  # pytest writes this at the end of every run
    failed = sorted(json.loads(kept.read_text())) if kept.exists() else []
    if not failed:
        print("pytest ended before a test failed: see the error above. Nothing runs again.")
        return 1
    if len(failed) > MOST:
        print(f"{len(failed)} tests failed. Up to {MOST} run again, to find those that are unsteady; more is a fault.")
        return 1
    for test in failed:
        print(f"once more, by itself: {test}", flush=True)
        command = [sys.executable, "-m", "pytest", "-n0", test]
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            print(f"failed twice: {test}")
            return 1
    print("\n".join(["UNSTEADY: these failed among others and passed by themselves:", *failed]))
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build/unsteady.txt").open("a") as written:
        written.writelines(f"{sys.version_info.major}.{sys.version_info.minor} {test}\n" for test in failed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
