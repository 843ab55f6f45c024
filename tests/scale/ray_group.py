"""A group of two hosts, started by Ray on this machine. It does what its standard input says.

    python -m tests.scale.ray_group

It prints the server's address when the group is ready, and again after "kill", which kills the follower, so that both
begin again. "lose" kills the follower's actor as well. "end" ends it, and what the processes ended with is printed.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import ray

from langchain_gemma_jax.scale.ray_hosts import HostsPlan, RayHosts, free_pair, ray_hosts
from tests.serving import asked

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=1",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
}


def main() -> None:
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80 * 2**20, log_to_driver=False)
    plan = HostsPlan(
        model="sprout-s",
        devices="2",
        port=free_pair("127.0.0.1"),
        max_context=256,
        warmup=False,
        strategy="PACK",
        drain=5.0,
    )
    with ray_hosts(plan, ENVIRONMENT) as group:
        ready(group)
        for line in sys.stdin:
            if line == "end\n":
                break
            (_, follower) = ray.get([actor.number.remote() for actor in group._actors])
            if line == "lose\n":
                ray.kill(group._actors[1], no_restart=False)
            os.kill(follower, signal.SIGKILL)
            before = group.started
            group.keep(ENVIRONMENT, lambda: group.started == before)  # noqa: B023  it ends in this round
            ready(group)
        say(f"ended {group.close()}")
    ray.shutdown()


def ready(group: RayHosts) -> None:
    """Wait until the leader says that it is."""
    while True:
        statuses = group.statuses()
        if any(status is not None for status in statuses):
            say(f"failed {statuses}: {group.log_ends()}".replace("\n", " "))
            sys.exit(1)
        try:
            if asked(group.server, "/ready")[0] == 200:
                break
        except OSError:
            pass
        time.sleep(0.1)
    say(group.server)


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
