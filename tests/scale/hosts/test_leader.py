"""The messages to followers, and when a program begins."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import pytest

from langchain_gemma_jax.errors import HostLostError
from langchain_gemma_jax.scale.hosts.leader import HostPrograms, Leader
from tests.scale.hosts.made_lines import lines


def test_a_program_begins_when_all_have_made_it():
    """Who begins it waits within it for the others, and XLA gives that up after some seconds."""
    leads, follows = lines()
    leader, ran = Leader([leads]), []
    leader.begin()
    begin = HostPrograms(leader, "of a model").mirrored(("read", 16), lambda: ran.append("it") or jnp.ones(2))
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(begin)
        told, _ = follows.receive()
        assert (told["do"], told["key"], ran) == ("ready", ["read", 16], [])
        follows.send({"do": "ready", "answers": told["number"]})
        assert follows.receive()[0]["do"] == "run"
        running.result()
        threads.submit(begin).result()
        assert follows.receive()[0]["do"] == "run"  # which is asked once
        assert len(ran) == 2
        other = HostPrograms(leader, "of a model").mirrored(("read", 64), lambda: ran.append("the other"))
        waiting = threads.submit(other)
        assert follows.receive()[0]["do"] == "ready"
        follows.close()
        with pytest.raises(HostLostError, match="Host 1 of the group is lost"):
            waiting.result()
    assert len(ran) == 2
