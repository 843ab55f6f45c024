"""A Ray cluster of this machine alone, with two replicas of an embedded model. It does what its standard input says.

    python -m tests.scale.ray_cluster PORT

"update" replaces the replicas by new ones, "end" ends it. After each it prints what it did.
"""

from __future__ import annotations

import sys

import ray
from ray import serve

from langchain_gemma_jax.scale.ray import app

ARGUMENTS = {"model": "sprout-s", "replicas": "2", "max_context": "512", "call_s": "60"}


def main(port: int) -> None:
    ray.init(num_cpus=6, include_dashboard=False, object_store_memory=80 * 2**20, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(app(ARGUMENTS), name="sprout", route_prefix="/sprout")
    say("ready")
    for line in sys.stdin:
        if line == "update\n":
            # Another time for a call is another version of every replica.
            serve.run(app({**ARGUMENTS, "call_s": "50"}), name="sprout", route_prefix="/sprout")
            say("updated")
        else:
            break
    serve.shutdown()
    ray.shutdown()
    say("ended")


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
