"""The performance gate: what a conversation costs in counts, in a process that finds nothing and in the next one.

    python scripts/gate.py             # compare with tests/engine/work_counts.json; 1 if something changed
    python scripts/gate.py --commit    # write new counts, for the JAX of this Python
    python scripts/gate.py --json      # print them

Programs, compiles, copies, bytes and tokens: no clock, so a busy machine changes nothing. If a count changed, what XLA
made of each program is written into build/gate, to be compared with that of the commit before. It takes half a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
DUMP = ROOT / "build" / "gate"
KIND, NAME = "gate", "two processes"
MODEL, CONTEXT = "sprout-s", 512

CONVERSATION = """
import json, sys
from langchain_gemma_jax import Sampling, configure, engine

# What is drafted depends on how long things take here; all else does not.
configure(drafts=False, guards="off", max_context=int(sys.argv[2]))
made = engine().warmup(sys.argv[1], progress=False)
served = engine().load(sys.argv[1])
context = []
for turn, new in enumerate((40, 120, 9, 3)):
    context += [4 + (7 * turn + 3 * place) % 200 for place in range(new)]
    done = engine().submit(served, context, Sampling(max_tokens=12, temperature=0.0, ignore_eos=True)).result()
    context += done.ids
found = engine().report()
print(json.dumps({
    "programs": found.programs,
    "programs at most": found.program_bound,
    "compiles": sum(counts.compiles for counts in found.by_model.values()),
    "programs from the disk": sum(counts.fetches for counts in found.by_model.values()),
    "tokens read": found.prefilled_tokens,
    "tokens reused": found.reused_tokens,
    "steps": found.steps,
    "positions": found.positions,
    "padded positions": found.padded_positions,
    "copies to the device": found.device_copies,
    "bytes to the device": found.bytes_to_device,
    "bytes to the host": found.bytes_to_host,
    "copies that nobody asked for": found.implicit_copies,
}))
"""


def conversation(programs: Path, python: str = sys.executable, flags: str = "") -> dict[str, float]:
    """Count what a conversation costs in a process of its own, with compiled programs in this folder.

    Raises:
        RuntimeError: the process failed. The message has the end of what it said.
    """
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "GEMMA_JAX_COMPILE_CACHE": str(programs),
        "GEMMA_JAX_CACHE_DIR": str(programs.parent / "measured"),
    }
    if flags:
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {flags}".strip()
    command = [python, "-c", CONVERSATION, MODEL, str(CONTEXT)]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the conversation failed:\n{done.stderr[-3000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def counts(python: str = sys.executable) -> dict[str, float]:
    """Count what two processes cost, of which the second finds what the first has compiled."""
    with tempfile.TemporaryDirectory() as folder:
        programs = Path(folder) / "xla"
        first, second = (conversation(programs, python) for _ in range(2))
    again = {f"{name}, in the next process": second[name] for name in ("compiles", "programs from the disk")}
    return first | again


def dump(python: str = sys.executable) -> Path:
    """Have XLA write what it makes of each program, and return the folder."""
    shutil.rmtree(DUMP, ignore_errors=True)
    DUMP.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        flags = f"--xla_dump_to={DUMP} --xla_dump_hlo_as_text"
        conversation(Path(folder) / "xla", python, flags)
    for path in list(DUMP.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        elif not path.name.endswith("after_optimizations.txt"):
            path.unlink()
    return DUMP


def judged(committed: Mapping[str, float] | None, found: Mapping[str, float]) -> str:
    """Return what is wrong; "": nothing is."""
    from tests.engine.work_counts import changes, explained

    if committed is None:
        return ""
    changed = changes(committed, found)
    return explained(changed).replace("scripts/work_counts.py", "scripts/gate.py --commit") if changed else ""


def main() -> int:
    """Count, and compare or commit; the exit status is 1 if something changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", action="store_true", help="write these counts")
    parser.add_argument("--json", action="store_true", help="print these counts")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.engine import work_counts

    found = counts()
    if asked.json:
        print(json.dumps(found))
        return 0
    if asked.commit:
        work_counts.commit(KIND, NAME, found)
        print(f"{len(found)} counts are written")
        return 0
    known = (work_counts.committed(KIND) or {}).get(NAME)
    if known is None:
        print("Nobody has counted with this JAX: python scripts/gate.py --commit does.")
        return 0
    if problem := judged(known, found):
        print(f"{problem}\nWhat XLA made of each program: {dump().relative_to(ROOT)}")
        return 1
    print(f"The gate is passed: {len(found)} counts are as they were.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
