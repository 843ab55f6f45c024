"""What conftest.py promises to every test: strict JAX, an empty home, no other machine."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import jax.numpy as jnp
import pytest

REFUSED = r"127\.0\.0\.1 only"


def test_jax_does_not_promote_dtypes():
    with pytest.raises(ValueError, match="promotion"):
        jnp.ones(2, jnp.float32) + jnp.ones(2, jnp.bfloat16)


def test_jax_does_not_promote_ranks():
    with pytest.raises(ValueError, match="rank_promotion"):
        jnp.ones((2, 2)) + jnp.ones(2)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_other_machines_are_out_of_reach(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock, pytest.raises(RuntimeError, match=REFUSED):
        sock.connect((host, 80))


async def test_other_machines_are_out_of_reach_of_asyncio_too():
    with pytest.raises(RuntimeError, match=REFUSED):
        await asyncio.open_connection("192.0.2.1", 80)


def test_names_are_not_looked_up():
    with pytest.raises(RuntimeError, match=REFUSED):
        socket.getaddrinfo("example.invalid", 443)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_is_within_reach(host):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection((host, server.getsockname()[1]), timeout=5).close()


def test_home_is_empty():
    assert list(Path.home().iterdir()) == []
    assert Path(os.environ["XDG_CACHE_HOME"]).is_relative_to(Path.home())


def test_no_setting_or_secret_of_the_user_gets_in():
    assert {name for name in os.environ if name.startswith(("HF_", "GEMMA_JAX_"))} == {
        "GEMMA_JAX_COMPILE_CACHE",  # off
        "HF_HOME",
        "HF_HUB_DISABLE_PROGRESS_BARS",
        "HF_HUB_DISABLE_TELEMETRY",
    }
