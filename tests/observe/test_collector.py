"""A scrape waits for nobody, and starts nothing."""

from __future__ import annotations

import threading

import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.observe.metrics.collector import MetricsCollector, start_metrics_server
from tests.engine.faults_support import Fault, greedy, injected, resource_exhausted
from tests.observe.scrapes import client, samples


def test_a_scrape_touches_no_device_and_waits_for_nobody(running_of, tiny_model):
    engine = running_of(guards="warn")
    served = engine.serve(tiny_model)
    engine.submit(served, [60, 61], greedy(3)).result()
    registry = client.CollectorRegistry()
    registry.register(MetricsCollector(vllm=True))
    release = threading.Event()
    blocked = threading.Thread(target=lambda: engine._owner.call(lambda: release.wait(300)))
    blocked.start()
    try:
        with injected(Fault(resource_exhausted, lambda *_: True)) as fault:
            for _ in range(20):
                client.generate_latest(registry)
    finally:
        release.set()
        blocked.join()
    assert fault.calls == 0


def test_without_an_engine_a_scrape_starts_none(monkeypatch):
    from langchain_gemma_jax.engine.api import process

    monkeypatch.setattr(process, "_engine", None)
    registry = client.CollectorRegistry()
    registry.register(MetricsCollector())
    text = client.generate_latest(registry).decode()
    assert samples(text)["gemma_jax_engine_up", frozenset()] == 0
    assert process._engine is None


@pytest.mark.long
def test_a_port_that_is_taken_is_said_and_one_that_is_closed_is_free():
    server = start_metrics_server(0)
    port = int(server.url.split(":")[2].split("/")[0])
    assert server.url.startswith("http://127.0.0.1:")
    with pytest.raises(InputError, match=f"port {port} of 127.0.0.1 is in use by another program. Take another one"):
        start_metrics_server(port)
    server.close()
    start_metrics_server(port).close()
    for wrong in (-1, 2**16, "80", True, None):
        with pytest.raises(InputError, match="expected a port from 0 to 65535"):
            start_metrics_server(wrong)
    for wrong in ("", None, 7):
        with pytest.raises(InputError, match=r"expected an address such as 127\.0\.0\.1"):
            start_metrics_server(0, wrong)
    with pytest.raises(InputError, match="cannot be listened at"):
        start_metrics_server(0, "no.such.host.invalid.")


@pytest.fixture(autouse=True)
def _no_lookups(monkeypatch):
    """Names of hosts are not looked up."""
    import socket

    real = socket.getaddrinfo

    def local(host, *rest, **more):
        if isinstance(host, str) and "invalid" in host:
            raise socket.gaierror(-2, "Name or service not known")
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", local)
