"""Count the engine's work anew, and write the counts into the file that the tests compare with.

    python scripts/work_counts.py

The counts are those of the JAX that this Python has; run it with each Python that the tests are run with. The commit
that holds them says what the work was for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = "tests/engine/test_work_counts.py"


def main() -> int:
    """Run the tests so that they write; the exit status is pytest's."""
    environment = os.environ | {"COMMIT_WORK_COUNTS": "1"}
    # One process: each test reads the file and writes it.
    command = [sys.executable, "-m", "pytest", "-q", "-n0", TESTS, *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
