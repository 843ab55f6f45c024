"""A group of hosts on this machine: a process for each, with simulated devices, that serve one model together."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from langchain_gemma_jax import ChatGemmaJax

ROOT = Path(__file__).parents[2]
MODEL = "sprout-s"


@dataclass(frozen=True)
class HostGroup:
    """The processes, the leader first, and where it serves."""

    processes: list[subprocess.Popen[bytes]]
    server: str

    def chat(self, **options: object) -> ChatGemmaJax:
        """A client, that asks nothing twice."""
        asked = {"temperature": 0, "max_tokens": 12, "timeout": 120} | options
        return ChatGemmaJax(server=self.server, **asked)  # type: ignore[arg-type]

    def ready(self) -> bool:
        """Return True if the leader says that it is ready."""
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(self.server.removeprefix("unix:"))
            line.sendall(b"GET /ready HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return b" 200 " in line.recv(64)

    def end(self) -> list[int]:
        """Tell the leader to end, and return what each process ended with."""
        self.processes[0].terminate()
        return self.ended()

    def ended(self) -> list[int]:
        """Wait for the end of all of them."""
        return [each.wait() for each in self.processes]


@contextmanager
def host_group(
    folder: Path, hosts: int, devices: int, *more: str, programs: Path | None = None, warm: bool = False
) -> Iterator[HostGroup]:
    """So many processes with so many devices each. Of one process: a server like any other. None is left behind.

    Programs are kept in their folder if there is one; with ``warm``, all that there can be are made at the beginning.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    key = folder / "key"
    key.touch(0o600)
    key.write_text("k" * 40)
    place = folder / "engine.sock"
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "GEMMA_JAX_COMPILE_CACHE": str(programs or "off"),
        "GEMMA_JAX_CACHE_DIR": str(folder / "measured"),
    }
    command = [sys.executable, str(ROOT / "langchain_gemma_jax_command.py"), "serve", MODEL]
    command += [] if warm else ["--no-warmup"]
    command += [f"--devices={hosts * devices}", "--max-context=256", f"--socket={place}", "--drain=5", *more]
    group = [f"--hosts={hosts}", f"--leader=127.0.0.1:{two_ports()}", f"--hosts-key-file={key}"]
    found = HostGroup([], f"unix:{place}")
    try:
        for number in range(hosts):
            own = [] if hosts == 1 else [*group, f"--host-number={number}"]
            with (folder / f"{number}.log").open("w") as log:
                found.processes.append(
                    subprocess.Popen(command + own, env=environment, stdout=log, stderr=subprocess.STDOUT)
                )
        while not place.exists():
            if found.processes[0].poll() is not None:
                pytest.fail("the server did not begin")
            time.sleep(0.02)
        yield found
    except BaseException:
        for log in sorted(folder.glob("*.log")):  # which pytest shows of a test that fails
            print(f"{log.name}:\n{log.read_text()[-3000:]}")  # noqa: T201
        raise
    finally:
        for each in found.processes:
            each.kill()
        for each in found.processes:
            each.wait()


def two_ports() -> int:
    """A port that is free, and so is the one behind it."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = int(one.getsockname()[1])
            try:
                with socket.create_server(("127.0.0.1", port + 1)):
                    return port
            except OSError:
                continue
