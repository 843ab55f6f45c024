"""Two hosts with one model: two processes of this machine here, with two simulated devices each.

    python examples/several_hosts.py

On real hosts each of the two commands runs on its own, with the address of the first one, and keeps its devices.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from langchain_gemma_jax import ChatGemmaJax

COMMAND = [sys.executable, "-c", "from langchain_gemma_jax.cli.command import main; raise SystemExit(main())"]
SIMULATED = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}


def main() -> None:
    """Start both, ask them something, and end them."""
    with tempfile.TemporaryDirectory() as folder:  # which nobody else can read
        key, socket = Path(folder, "key"), Path(folder, "own", "engine.sock")
        key.touch(0o600)
        key.write_text(os.urandom(32).hex())
        group = ["--hosts", "2", "--leader", "127.0.0.1:28476", "--hosts-key-file", str(key), "--no-warmup"]
        serve = [*COMMAND, "serve", "sprout-s", "--devices", "4", "--max-context", "256", "--socket", str(socket)]
        hosts = [
            subprocess.Popen([*serve, *group, "--host-number", str(number)], env=os.environ | SIMULATED)
            for number in range(2)
        ]
        try:
            while not socket.exists() and hosts[0].poll() is None:
                time.sleep(0.1)
            llm = ChatGemmaJax(server=f"unix:{socket}", temperature=0, max_tokens=16)  # in no group; needs no devices
            print(llm.invoke("Hello!").text)
            hosts[0].terminate()  # who leads; the other ends with it
            print("They ended with", [host.wait(60) for host in hosts])
        finally:
            for host in hosts:
                host.kill()


if __name__ == "__main__":
    main()
