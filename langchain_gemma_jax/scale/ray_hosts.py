"""A group of hosts with one model, started by Ray: one bundle of a placement group for each host, and an actor in it.

    python -m langchain_gemma_jax.scale.ray_hosts model=google/gemma-4-31b-it hosts=2 gpus=8

Ray finds the machines and sets their devices aside. When a process ends or a machine is lost, the whole group begins
again, after a pause that grows while it keeps failing. The processes speak the package's protocol (``scale/hosts``),
as under a LeaderWorkerSet: each actor runs ``gemma-jax serve`` in a process of its own, so that the end of one never
takes a worker of Ray's along. A process whose actor is gone ends by itself, as it loses the rest of its group.
"""

from __future__ import annotations

import base64
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_gemma_jax.config import default_model, whole_environment
from langchain_gemma_jax.errors import HostLostError, InputError, InstallationError
from langchain_gemma_jax.models.configuration.embedded import DEFAULT
from langchain_gemma_jax.scale.plan import read_arguments

PLACED = 600.0  # seconds that Ray may take to find the machines
LOOK_SECONDS = 1.0  # between two looks at the processes
LONGEST_PAUSE = 60.0  # seconds before a group that keeps failing begins again
LASTED = 300.0  # seconds behind which a failure is a new one
LOST = "lost"  # instead of a status: the actor is gone, perhaps with its machine
END_SECONDS = 60.0  # that a group may take to end
STRATEGIES = ("STRICT_SPREAD", "SPREAD", "PACK", "STRICT_PACK")
_LOG_END = 2000  # characters of a log


@dataclass(frozen=True, kw_only=True)
class HostsPlan:
    """A group of hosts that serve one model."""

    model: str = ""
    """The model, by a name that means the same files on each host. Empty: ``GEMMA_JAX_MODEL``, or an embedded one."""
    hosts: int = 2
    """Processes, the leader included: one for each bundle."""
    devices: str = "auto"
    """The devices of all hosts together that the model is divided among: a number, or "auto"."""
    port: int = 8000
    """The port at which the leader answers."""
    max_context: int | None = None
    """The most tokens that a conversation may have."""
    warmup: bool = True
    """Make all programs before the group is ready."""
    api_key_file: str = ""
    """The file of API keys, on the leader's machine. Empty: only programs on that machine are answered."""
    cpus: float = 1.0
    """Processors reserved for each host."""
    gpus: float = 0.0
    """GPUs of each host."""
    tpus: float = 0.0
    """TPU chips of each host."""
    strategy: str = "STRICT_SPREAD"
    """Ray's way to place the hosts: each on a machine of its own, unless this says otherwise."""
    drain: float = 30.0
    """Seconds that open answers have when the group is ended."""

    def __post_init__(self) -> None:
        for name, least in {"hosts": 2, "port": 1, "cpus": 0.0, "gpus": 0.0, "tpus": 0.0, "drain": 0.0}.items():
            value = getattr(self, name)
            if not least <= value < (2**16 if name == "port" else 2**31):
                raise InputError(f"{name}: expected a number from {least:g}, found {value!r}.")
        if self.strategy not in STRATEGIES:
            raise InputError(f"strategy: expected one of {', '.join(STRATEGIES)}, found {self.strategy!r}.")
        if self.devices != "auto" and not self.devices.isdecimal():
            raise InputError(f'devices: expected a number or "auto", found {self.devices!r}.')

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> HostsPlan:
        """Return the plan that arguments describe. Their values may be texts, as on a command line.

        Raises:
            InputError: an argument is unknown, or its value is not possible.
        """
        return cls(**read_arguments(cls, "hosts", arguments))

    @property
    def bundle(self) -> dict[str, float]:
        """The resources that are set aside for each host."""
        asked = {"CPU": self.cpus, "GPU": self.gpus, "TPU": self.tpus}
        return {name: amount for name, amount in asked.items() if amount} or {"CPU": 1.0}

    def command(self, number: int, leader: str, key_file: str) -> list[str]:
        """Return the command of one host. ``leader``: the group's address, whose port is JAX's."""
        host = leader.rpartition(":")[0].removeprefix("[").removesuffix("]")
        asked = [self.model or default_model() or DEFAULT, f"--devices={self.devices}", f"--hosts={self.hosts}"]
        asked += [f"--host-number={number}", f"--leader={leader}", f"--hosts-key-file={key_file}"]
        asked += [
            f"--port={self.port}",
            f"--host={host if self.api_key_file else '127.0.0.1'}",
            f"--drain={self.drain}",
        ]
        asked += [f"--api-key-file={self.api_key_file}"] if self.api_key_file else []
        asked += [] if self.max_context is None else [f"--max-context={self.max_context}"]
        asked += [] if self.warmup else ["--no-warmup"]
        return [sys.executable, "-m", "langchain_gemma_jax_command", "serve", *asked]


class HostProcess:
    """One host of a group, as a process; an actor of Ray's, which the group asks."""

    def __init__(self, plan: HostsPlan, number: int) -> None:
        self._plan, self._number = plan, number
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._last = ""  # the end of the last log

    def address(self) -> str:
        """Return this machine's address with a port that is free, and whose next one is free too."""
        import ray

        host = str(ray.util.get_node_ip_address())
        return f"[{host}]:{free_pair(host)}" if ":" in host else f"{host}:{free_pair(host)}"

    def start(self, leader: str, key: bytes, environment: Mapping[str, str]) -> int:
        """Begin the process, and return its number in the system."""
        self._folder = tempfile.TemporaryDirectory(prefix="gemma-jax-host-")
        place = Path(self._folder.name)
        key_file = place / "key"
        key_file.touch(0o600)
        key_file.write_bytes(base64.b64encode(key))
        with (place / "log").open("wb") as log:
            command = self._plan.command(self._number, leader, str(key_file))
            variables = whole_environment() | dict(environment)
            self._process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)  # noqa: S603  our own
        return self._process.pid

    def number(self) -> int:
        """Return the process's number in the system; 0: there is none."""
        return 0 if self._process is None else self._process.pid

    def status(self) -> int | None:
        """Return what the process ended with; None: it runs."""
        return None if self._process is None else self._process.poll()

    def log_end(self) -> str:
        """Return the end of what the process wrote."""
        if self._folder is None:
            return self._last
        log = Path(self._folder.name) / "log"
        return log.read_text(errors="replace")[-_LOG_END:] if log.exists() else ""

    def end(self, *, now: bool = False) -> int | None:
        """Have the process end: by SIGTERM if it leads, and otherwise when its leader has; or at once."""
        if self._process is None:
            return None
        if now:
            self._process.kill()
        elif self._number == 0:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(END_SECONDS + self._plan.drain)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._last = self.log_end()
        if self._folder is not None:
            self._folder.cleanup()  # with the key
            self._folder = None
        return self._process.wait()


class RayHosts:
    """A group that runs on Ray."""

    def __init__(self, plan: HostsPlan, actors: list[Any], placement: Any) -> None:
        self.plan, self._actors, self._placement = plan, actors, placement
        self.leader = ""
        self.started = 0  # times that the group was started

    def begin(self, environment: Mapping[str, str]) -> None:
        """Start all processes: for the first time, or again.

        Raises:
            HostLostError: not all of Ray's actors were there in time.
        """
        import ray
        from ray.exceptions import RayActorError

        until = time.monotonic() + PLACED
        while True:
            try:
                self.leader = ray.get(self._actors[0].address.remote())
                key = secrets.token_bytes(32)
                ray.get([actor.start.remote(self.leader, key, environment) for actor in self._actors])
            except RayActorError as error:  # Ray is looking for another machine
                if time.monotonic() > until:
                    raise HostLostError(
                        f"Ray did not find another place for a host of the group within {PLACED:g} s. "
                        "`ray status` shows what there is."
                    ) from error
                self._end(now=True)
                time.sleep(LOOK_SECONDS)
            else:
                self.started += 1
                return

    @property
    def server(self) -> str:
        """The address for ``ChatGemmaJax(server=...)``: without keys, of programs on the leader's machine."""
        host = self.leader.rpartition(":")[0] if self.plan.api_key_file else "127.0.0.1"
        return f"http://{host}:{self.plan.port}"

    def statuses(self) -> list[int | str | None]:
        """Return what each process ended with. None: it runs. ``LOST``: its actor is gone."""
        return self._each("status")

    def log_ends(self) -> list[str]:
        """Return the end of what each process wrote."""
        return self._each("log_end")

    def keep(self, environment: Mapping[str, str], go_on: Callable[[], bool] = lambda: True) -> None:
        """Keep the group running: when one process has ended or is lost, all are ended, and started again."""
        pause, began = LOOK_SECONDS, time.monotonic()
        while go_on():
            found = self.statuses()
            if any(status is not None for status in found):
                logs = [text for status, text in zip(found, self.log_ends(), strict=True) if status not in {None, LOST}]
                if time.monotonic() - began > LASTED:
                    pause = LOOK_SECONDS
                sys.stderr.write(
                    f"gemma-jax: a host of the group has ended ({found}); all begin again in {pause:g} s. "
                    f"It wrote last:\n{''.join(logs)}\n"
                )
                self._end(now=True)
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                self.begin(environment)
                began = time.monotonic()
            time.sleep(LOOK_SECONDS)

    def close(self) -> list[int | str | None]:
        """End the group, the leader first, which lets open answers finish; return what each process ended with."""
        import ray

        ended = self._end(now=False)
        for actor in self._actors:
            ray.kill(actor)
        ray.util.remove_placement_group(self._placement)
        return ended

    def _end(self, *, now: bool) -> list[int | str | None]:
        return self._each("end", now=now)

    def _each(self, method: str, **given: object) -> list[Any]:
        """Ask all actors at once, and return their answers; ``LOST`` for one that is gone."""
        import ray
        from ray.exceptions import RayActorError

        found: list[Any] = []
        for answer in [getattr(actor, method).remote(**given) for actor in self._actors]:
            try:
                found.append(ray.get(answer))
            except RayActorError:
                found.append(LOST)
        return found


@contextmanager
def ray_hosts(plan: HostsPlan, environment: Mapping[str, str] | None = None) -> Iterator[RayHosts]:
    """Have a group of hosts on Ray for as long as a ``with`` block lasts. ``ray.init`` comes before it.

        with ray_hosts(HostsPlan(model="google/gemma-4-31b-it", hosts=2, gpus=8)) as group:
            group.keep({})

    Args:
        plan: what is served, and by how many.
        environment: variables for each process, besides those of Ray's workers.

    Raises:
        InstallationError: Ray is not installed. HostLostError: Ray did not find the machines in time.
    """
    try:
        import ray
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
    except ImportError as error:
        raise InstallationError("Ray is not installed: pip install 'langchain-gemma-jax[ray]'.") from error
    placement = placement_group([plan.bundle] * plan.hosts, strategy=plan.strategy)
    if not placement.wait(PLACED):
        ray.util.remove_placement_group(placement)
        raise HostLostError(
            f"Ray did not find {plan.hosts} places with {plan.bundle} each within {PLACED:g} s ({plan.strategy}). "
            "`ray status` shows what there is."
        )
    actor = ray.remote(HostProcess)
    actors = [
        actor.options(
            num_cpus=plan.bundle.get("CPU", 0),
            num_gpus=plan.gpus,
            max_restarts=-1,  # on another machine, when Ray has found one
            resources={"TPU": plan.tpus} if plan.tpus else {},
            scheduling_strategy=PlacementGroupSchedulingStrategy(placement, placement_group_bundle_index=number),
        ).remote(plan, number)
        for number in range(plan.hosts)
    ]
    group = RayHosts(plan, actors, placement)
    try:
        group.begin(environment or {})
        yield group
    finally:
        group.close()


def say(text: str) -> None:
    """Write a line to the terminal."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def free_pair(host: str) -> int:
    """Return a port of an address that is free, and so is the next one."""
    while True:
        with socket.create_server((host, 0)) as one:
            port = int(one.getsockname()[1])
            try:
                with socket.create_server((host, port + 1)):
                    return port
            except OSError:
                continue


def main(arguments: list[str]) -> int:
    """Run a group until it is interrupted. ``arguments``: fields of ``HostsPlan``, as NAME=VALUE."""
    if unequal := [each for each in arguments if "=" not in each]:
        raise InputError(f"hosts: expected NAME=VALUE, found {', '.join(unequal)}.")
    plan = HostsPlan.read(dict(each.split("=", 1) for each in arguments))
    import ray

    ray.init()
    with ray_hosts(plan) as group:
        say(f"{plan.hosts} hosts at {group.leader}; the leader answers at {group.server}")
        try:
            group.keep({})
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
