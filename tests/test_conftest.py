"""The promises of conftest.py to every test: strict JAX, an empty home, no other machine."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import pytest

from tests.conftest import pytest_collection_modifyitems, share_of

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
        "GEMMA_JAX_COMPILE_WAIT",  # an hour
        "HF_HOME",
        "HF_HUB_DISABLE_PROGRESS_BARS",
        "HF_HUB_DISABLE_TELEMETRY",
    }


def test_shares_of_the_long_tests_are_all_of_them_and_every_share_has_the_others():
    items = [
        SimpleNamespace(nodeid=f"tests/test_{file}.py::test_{kind}", get_closest_marker={kind: True}.get)
        for file in range(40)
        for kind in ("long", "quick")
    ]

    def chosen(share):
        def count_out(items):
            gone.extend(items)

        gone, left = [], list(items)
        config = SimpleNamespace(getoption=lambda _: share, hook=SimpleNamespace(pytest_deselected=count_out))
        pytest_collection_modifyitems(config, left)
        assert len(gone) + len(left) == len(items)
        return {item.nodeid for item in left}

    first, second = chosen("1/2"), chosen("2/2")
    assert first | second == chosen(None) == chosen("1/1")
    assert {name.partition("::")[2] for name in first & second} == {"test_quick"}
    assert len(first & second) == 40
    assert all(10 <= len(share) - 40 <= 30 for share in (first, second))


@pytest.mark.parametrize("text", ["3/2", "0/2", "1", "a/b", "-1/2", ""])
def test_a_share_that_there_is_not_is_refused(text):
    with pytest.raises(pytest.UsageError, match="expected K/N"):
        share_of(text)
