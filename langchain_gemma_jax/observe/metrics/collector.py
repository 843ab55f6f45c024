"""A collector for a registry of prometheus-client, and a small HTTP server for processes that have no registry."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from langchain_gemma_jax.engine.api.process import running_engine
from langchain_gemma_jax.errors import InputError, InstallationError
from langchain_gemma_jax.observe.metrics.exemplars import Exemplars
from langchain_gemma_jax.observe.metrics.families import Family, families
from langchain_gemma_jax.observe.metrics.vllm_names import vllm_families

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

PORT = 9464


class MetricsCollector:
    """The metrics of this process's engine, read at each scrape. It does not start an engine.

        from prometheus_client import REGISTRY
        REGISTRY.register(MetricsCollector())

    Args:
        vllm: also give the numbers under vLLM's names.

    Raises:
        InstallationError: prometheus-client is not installed.
    """

    def __init__(self, *, vllm: bool = False) -> None:
        _client()
        self._vllm = vllm

    def collect(self) -> Iterable[Metric]:
        """Return every metric as it is now."""
        engine = running_engine()
        traces = Exemplars() if engine is None else engine.companion(Exemplars)
        return [_metric(family, traces) for family in self._families(None if engine is None else engine.report())]

    def describe(self) -> Iterable[Metric]:
        """Return every metric without samples."""
        return [_metric(family, Exemplars(), samples=False) for family in self._families(None)]

    def _families(self, report: Any) -> list[Family]:
        return families(report) + (vllm_families(report) if self._vllm else [])


class MetricsServer:
    """A server that answers Prometheus' scrapes until it is closed."""

    def __init__(self, url: str, server: Any, thread: Any) -> None:
        self.url, self._server, self._thread = url, server, thread

    def close(self) -> None:
        """Stop answering. A second call does nothing."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __repr__(self) -> str:
        return f"MetricsServer({self.url!r})"


def start_metrics_server(
    port: int = PORT, host: str = "127.0.0.1", *, vllm: bool = False, registry: CollectorRegistry | None = None
) -> MetricsServer:
    """Answer Prometheus' scrapes in a thread of this process.

        start_metrics_server(9464)

    Args:
        port: the port. 0 takes a free one; ``url`` of the returned server says which.
        host: the address to listen at. By default only this machine can connect.
        vllm: also give the numbers under vLLM's names.
        registry: the registry to serve. None serves this engine alone.

    Raises:
        InputError: the port is in use, or not possible.
        InstallationError: prometheus-client is not installed.
    """
    client = _client()
    given: object = port
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given < 2**16:
        raise InputError(f"start_metrics_server: expected a port from 0 to 65535, found {port!r}.")
    named: object = host
    if not isinstance(named, str) or not named:  # which would be all of the machine's addresses
        raise InputError(f"start_metrics_server: expected an address such as 127.0.0.1 or 0.0.0.0, found {host!r}.")
    if registry is None:
        registry = client.CollectorRegistry()
        registry.register(MetricsCollector(vllm=vllm))
    elif vllm:
        raise InputError(
            "start_metrics_server: expected no vllm=True with a registry: MetricsCollector(vllm=True) is for that."
        )
    try:
        server, thread = client.start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            problem = f"port {port} of {host} is in use by another program. Take another one, or 0 for one that is free"
        elif error.errno == errno.EACCES:
            problem = f"port {port} needs special rights. Take one from 1024 on"
        else:
            problem = f"{host}:{port} cannot be listened at: {error.strerror or error}"
        raise InputError(f"start_metrics_server: {problem}.") from None
    shown = f"[{host}]" if ":" in host else host  # IPv6
    return MetricsServer(f"http://{shown}:{server.server_address[1]}/metrics", server, thread)


def _client() -> Any:
    try:
        import prometheus_client
    except ImportError as error:
        raise InstallationError(
            "Metrics need prometheus-client: pip install 'langchain-gemma-jax[metrics]'."
        ) from error
    return prometheus_client


def _metric(family: Family, traces: Exemplars, *, samples: bool = True) -> Metric:
    from prometheus_client.core import CounterMetricFamily, Exemplar, GaugeMetricFamily, HistogramMetricFamily

    if family.kind == "histogram":
        histogram = HistogramMetricFamily(family.name, family.says, labels=family.labels)
        for labels, found in family.distributions.items() if samples else ():
            bounds = [*(str(float(bound)) for bound in found.bounds), "+Inf"]
            linked = {
                number: Exemplar({"trace_id": each.trace}, each.value, each.at)
                for number, each in traces.of(family.name, labels).items()
            }
            counted = enumerate(zip(bounds, accumulate(found.counts), strict=True))
            buckets = [(*each, linked[at]) if at in linked else each for at, each in counted]
            histogram.add_metric(labels, buckets, found.total)
        return histogram
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = kind(family.name, family.says, labels=family.labels)
    for labels, value in family.numbers.items() if samples else ():
        metric.add_metric(labels, value)
    return metric
