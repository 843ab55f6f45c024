"""People's words, calls and names are nowhere that others look: no log, metric, span, alert, report or status file."""

from __future__ import annotations

import json
import logging
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.engine.base.events import Events
from langchain_gemma_jax.errors import DeadlineError, GuardError, InputError
from langchain_gemma_jax.observe.webhook import Webhook

client = pytest.importorskip("prometheus_client", reason="an extra")
pytest.importorskip("opentelemetry.sdk", reason="an extra")

from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

from langchain_gemma_jax.observe.metrics.collector import start_metrics_server  # noqa: E402
from langchain_gemma_jax.observe.spans import trace_engine  # noqa: E402
from tests.observe.test_families import get  # noqa: E402

CANARY = "CANARY"
TENANT = "TENANT-CANARY"  # which the report may have: it stays in the process


@tool
def CANARY_lookup(CANARY_key: str) -> str:  # noqa: N802, N803
    """Look up CANARY documentation."""
    return "CANARY result"


@pytest.fixture
def received():
    got: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield got, f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.mark.long
def test_nobody_else_sees_a_word(running_of, chat_folder, tmp_path, received, caplog, capsys, monkeypatch):
    monkeypatch.setenv("CANARY_API_KEY", "CANARY-key-value")
    records: list[object] = []
    publish = Events.publish
    monkeypatch.setattr(Events, "publish", lambda self, record: (records.append(record), publish(self, record))[1])
    engine = running_of(guards="warn")
    got, url = received
    alerts = Webhook(url, again_after=0, per_minute=1000)
    engine.on_trip(alerts)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    stop = trace_engine(provider)
    server = start_metrics_server(0, vllm=True)
    llm = ChatGemmaJax(model=str(chat_folder), max_tokens=4, app="agent", scope=TENANT)
    spoken = [
        SystemMessage("S CANARY"),
        HumanMessage("CANARY"),
        AIMessage("", tool_calls=[{"name": "CANARY_lookup", "args": {"CANARY_key": "CANARY"}, "id": "1"}]),
        ToolMessage("CANARY", tool_call_id="1", name="CANARY_lookup"),
    ]
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True) as warned, provider.get_tracer("t").start_as_current_span("chat"):
        warnings.simplefilter("always")
        llm.invoke([HumanMessage("CANARY")])
        list(llm.stream([HumanMessage("CANARY again")]))
        with pytest.raises((DeadlineError, InputError, GuardError)):
            llm.invoke([HumanMessage("CANARY")], timeout=0.0)
        with pytest.raises(Exception):  # noqa: B017, PT011  too long for the model, which says how long it is
            llm.invoke(spoken * 3)
        (runner,) = engine._owner.models.runners.values()
        runner.device.excess = lambda: 5000  # a guard is tripped
        llm.invoke([HumanMessage("CANARY trips")])
    stop()
    assert alerts.flush(20)
    report = engine.report()
    assert report.guard_trips
    assert got
    shown = {
        "metrics": get(server.url),
        "spans": str([(span.name, dict(span.attributes), str(span.status)) for span in exporter.get_finished_spans()]),
        "alerts": "\n".join(got),
        "logs": "\n".join(f"{each.getMessage()} {each.exc_text}" for each in caplog.records if ours(each)),
        "warnings": "\n".join(str(each.message) for each in warned),
        "printed": "".join(capsys.readouterr()),
        "status file": "\n".join(path.read_text(errors="replace") for path in status_files()),
        "names of status files": str(status_files()).replace(str(tmp_path), ""),
    }
    server.close()
    assert len(exporter.get_finished_spans()) > 3
    assert {name: CANARY in text for name, text in shown.items()} == dict.fromkeys(shown, False)
    inside = {
        "report": str(report),
        "drawn report": report._repr_html_(),
        "plain report": json.dumps(report.to_dict()),
        "records": str(records),
    }
    assert {name: CANARY in text.replace(TENANT, "") for name, text in inside.items()} == dict.fromkeys(inside, False)


def ours(record: logging.LogRecord) -> bool:
    return record.name.startswith("langchain_gemma_jax")


def status_files() -> list[Path]:
    from langchain_gemma_jax.config import cache_dir

    return [path for path in cache_dir().rglob("*") if path.is_file()] if cache_dir().exists() else []
