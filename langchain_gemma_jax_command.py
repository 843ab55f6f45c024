"""The way into the command ``gemma-jax``: it says what is wrong where the package itself refuses to be imported.

So it stands beside the package. A faulty release of JAX is refused before anything of the package can run, and whoever
asks the doctor about that is to get an answer, too.
"""

from __future__ import annotations

import json
import sys

REFUSED = "UnsafeJaxError"  # by its name: its module is part of what cannot be imported


def main() -> int:
    """Run the command, and give its exit status."""
    try:
        from langchain_gemma_jax.cli.command import main as run
    except RuntimeError as error:
        if type(error).__name__ != REFUSED:
            raise
        return refused(str(error), sys.argv[1:])
    except KeyboardInterrupt:
        return 130
    return run()


def refused(problem: str, arguments: list[str]) -> int:
    """Say that this JAX is refused: as the doctor's finding, or as the reason why nothing can be done."""
    if arguments[:1] != ["doctor"]:
        sys.stderr.write(f"gemma-jax: {problem}\n")
        return 2
    if "--json" in arguments:
        finding = {"what": "known faults", "verdict": "bad", "found": problem, "advice": "Install another release."}
        said = json.dumps({"verdict": "bad", "summary": "This JAX is refused.", "findings": [finding]})
    else:
        said = f"bad   known faults: {problem}"
    sys.stdout.write(f"{said}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
