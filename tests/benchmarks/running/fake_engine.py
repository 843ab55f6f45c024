"""An engine for the tests of whoever measures engines. The job's model says how it behaves."""

from __future__ import annotations

import sys
import time

from benchmarks.running.serve import Job, serve


def start(job: Job):
    sys.stdout.write("a library that greets\n")
    if job.model == "cannot start":
        sys.exit("no such instruction")
    if job.model == "never starts":
        time.sleep(60)
    rounds = 0

    def run_round():
        nonlocal rounds
        rounds += 1
        sys.stdout.write("and goes on talking\n")
        sys.stdout.flush()
        if job.model == "fails in round 2" and rounds == 2:
            sys.exit("out of memory")
        if job.model == "never answers":
            time.sleep(60)
        return {"prefill": {"256": [0.5]}, "decode": 0.1 * rounds, "tokens": [job.threads, rounds]}

    return {"version": f"fake {job.dtype}"}, run_round


if __name__ == "__main__":
    serve(start)
