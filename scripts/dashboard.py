"""Writes the Grafana dashboard that comes with the package: python scripts/dashboard.py.

A dashboard is JSON that nobody reads; what it shows is said here, and of objectives in ``burn_panels.py``.
Values of histograms are drawn with exemplars: a point is a request, and leads to its trace.
"""

from __future__ import annotations

import json
from pathlib import Path

from langchain_gemma_jax.observe.files import OBJECTIVES, text_of
from langchain_gemma_jax.observe.files.burn_panels import burn_panels
from langchain_gemma_jax.observe.files.objectives import objectives_of

TARGET = Path(__file__).parents[1] / "langchain_gemma_jax" / "observe" / "files" / "grafana-dashboard.json"

PICKED = 'job=~"$job", instance=~"$instance"'
OF_APP = f'{PICKED}, app=~"$app"'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def quantile(share: float, metric: str, by: str = "le", labels: str = OF_APP) -> str:
    """The value that a share of those in a histogram does not pass."""
    return f"histogram_quantile({share}, sum by ({by}) (rate({metric}_bucket{{{labels}}}[$__rate_interval])))"


def rate(metric: str, by: str = "", labels: str = OF_APP) -> str:
    """How much a counter grows in a second."""
    return f"sum{f' by ({by}) ' if by else ''}(rate({metric}{{{labels}}}[$__rate_interval]))"


def share_of(part: str, whole: str) -> str:
    """One rate as a share of another."""
    return f"{part} / {whole}"


def grown(metric: str) -> str:
    """How much a counter of models grew, by model."""
    return f"sum by (model) (increase({metric}{{{PICKED}}}[$__rate_interval]))"


def within(metric: str, bound: str, labels: str) -> str:
    """The share of the values up to a bound."""
    return (
        f'sum(rate({metric}_bucket{{{labels}, le="{bound}"}}[$__rate_interval]))'
        f" / sum(rate({metric}_count{{{labels}}}[$__rate_interval]))"
    )


# Title, kind, unit, and what is drawn: (expression, legend). Four columns a line of tiles, two of graphs.
EXECUTIVE = [
    ("Requests a second", "stat", "reqps", [(rate("gemma_jax_requests_total"), "")]),
    ("Tokens a second", "stat", "short", [(rate("gemma_jax_tokens_total", labels=f'{OF_APP}, kind="generated"'), "")]),
    (
        "Steady first tokens within 2.5 s",
        "stat",
        "percentunit",
        [(within("gemma_jax_time_to_first_token_seconds", "2.5", f'{OF_APP}, start="steady"'), "")],
    ),
    (
        "Requests that fail",
        "stat",
        "percentunit",
        [(f"{rate('gemma_jax_request_errors_total')} / {rate('gemma_jax_requests_total')}", "")],
    ),
    (
        "Prompt tokens that were not read again",
        "stat",
        "percentunit",
        [
            (
                share_of(
                    rate("gemma_jax_tokens_total", labels=f'{OF_APP}, kind="reused"'),
                    rate("gemma_jax_tokens_total", labels=f'{OF_APP}, kind=~"read|reused"'),
                ),
                "",
            )
        ],
    ),
    ("Cold requests", "stat", "percentunit", [(f"avg(gemma_jax_cold_start_ratio{{{PICKED}}})", "")]),
    (
        "Time spent compiling",
        "stat",
        "s",
        [(f"sum(increase(gemma_jax_compile_seconds_total{{{PICKED}}}[$__range]))", "")],
    ),
    (
        "Trips of guards",
        "stat",
        "short",
        [(f"sum(increase(gemma_jax_guard_trips_total{{{OF_APP}}}[$__range])) or vector(0)", "")],
    ),
]
ON_CALL = [
    (
        "First token",
        "timeseries",
        "s",
        [
            (quantile(0.5, "gemma_jax_time_to_first_token_seconds", "le, start"), "half, {{start}}"),
            (quantile(0.95, "gemma_jax_time_to_first_token_seconds", "le, start"), "95 %, {{start}}"),
            (quantile(0.99, "gemma_jax_time_to_first_token_seconds", "le, start"), "99 %, {{start}}"),
        ],
    ),
    (
        "Whole request",
        "timeseries",
        "s",
        [
            (quantile(share, "gemma_jax_request_seconds", "le, start"), f"{name}, {{{{start}}}}")
            for share, name in ((0.5, "half"), (0.95, "95 %"), (0.99, "99 %"))
        ],
    ),
    (
        "Between tokens",
        "timeseries",
        "s",
        [
            (quantile(0.5, "gemma_jax_inter_token_seconds"), "half"),
            (quantile(0.95, "gemma_jax_inter_token_seconds"), "95 %"),
        ],
    ),
    (
        "Requests",
        "timeseries",
        "short",
        [
            (f"sum(gemma_jax_requests_running{{{PICKED}}})", "running"),
            (f"sum(gemma_jax_requests_waiting{{{PICKED}}})", "waiting"),
            (rate("gemma_jax_requests_refused_total", labels=PICKED), "refused a second"),
        ],
    ),
    (
        "Requests a second, by result",
        "timeseries",
        "reqps",
        [(rate("gemma_jax_requests_by_result_total", "result", PICKED), "{{result}}")],
    ),
    (
        "Errors a second",
        "timeseries",
        "short",
        [
            (rate("gemma_jax_request_errors_total", "error"), "{{error}}"),
            (rate("gemma_jax_cancellations_total"), "cancelled"),
        ],
    ),
    (
        "Device memory",
        "timeseries",
        "bytes",
        [(f"sum by (model, part) (gemma_jax_device_memory_bytes{{{PICKED}}})", "{{model}} {{part}}")],
    ),
    (
        "Device memory, of what models may take",
        "timeseries",
        "percentunit",
        [
            (
                share_of(f"gemma_jax_device_used_bytes{{{PICKED}}}", f"gemma_jax_device_budget_bytes{{{PICKED}}}"),
                "{{instance}} {{device}}",
            )
        ],
    ),
    (
        "Time in which the device had work",
        "timeseries",
        "percentunit",
        [
            (
                f"sum by (instance) (rate(gemma_jax_device_busy_seconds_total{{{PICKED}}}[$__rate_interval]))",
                "{{instance}}",
            )
        ],
    ),
    (
        "Memory of conversations",
        "timeseries",
        "percentunit",
        [(f"max by (instance) (gemma_jax_kv_usage_ratio{{{PICKED}}})", "{{instance}}")],
    ),
    (
        "Guards",
        "timeseries",
        "short",
        [
            (
                f"sum by (guard, app) (increase(gemma_jax_guard_trips_total{{{OF_APP}}}[$__rate_interval]))",
                "{{guard}} {{app}}",
            )
        ],
    ),
    (
        "Engines",
        "timeseries",
        "short",
        [(f"sum by (instance) (gemma_jax_engine_up{{{PICKED}}})", "{{instance}}")],
    ),
]
DEBUG = [
    (
        "Where the time of a request goes",
        "timeseries",
        "s",
        [
            (
                share_of(rate(f"{metric}_sum"), rate(f"{metric}_count")),
                name,
            )
            for name, metric in (
                ("queue", "gemma_jax_request_queue_seconds"),
                ("prefill", "gemma_jax_request_prefill_seconds"),
                ("decode", "gemma_jax_request_decode_seconds"),
                ("all", "gemma_jax_request_seconds"),
            )
        ],
    ),
    ("Tokens a second", "timeseries", "short", [(rate("gemma_jax_tokens_total", "kind"), "{{kind}}")]),
    (
        "Compiles",
        "timeseries",
        "short",
        [
            (f"sum by (model) (increase(gemma_jax_compiles_total{{{PICKED}}}[$__rate_interval]))", "{{model}}"),
            (f"sum(increase(gemma_jax_program_fetches_total{{{PICKED}}}[$__rate_interval]))", "from the disk"),
        ],
    ),
    (
        "Seconds for programs and weights",
        "timeseries",
        "s",
        [
            (f"sum(increase(gemma_jax_compile_seconds_total{{{PICKED}}}[$__rate_interval]))", "compiling"),
            (f"sum(increase(gemma_jax_program_fetch_seconds_total{{{PICKED}}}[$__rate_interval]))", "fetching"),
            (f"sum(increase(gemma_jax_model_load_seconds_total{{{PICKED}}}[$__rate_interval]))", "loading weights"),
        ],
    ),
    (
        "Seconds of each program's compile",
        "timeseries",
        "s",
        [
            (
                f"topk(10, sum by (model, program, bucket) (gemma_jax_program_compile_seconds_total{{{PICKED}}}))",
                "{{model}} {{program}} {{bucket}}",
            )
        ],
    ),
    (
        "Programs that are waited for",
        "timeseries",
        "short",
        [
            (f"sum(gemma_jax_programs_making{{{PICKED}}})", "being made"),
            (f"sum(gemma_jax_programs_waiting{{{PICKED}}})", "waiting for that"),
            (f"max(gemma_jax_standstill_seconds{{{PICKED}}})", "seconds that all stand still"),
        ],
    ),
    (
        "Positions that were padding",
        "timeseries",
        "percentunit",
        [
            (
                share_of(
                    rate("gemma_jax_padded_positions_total", labels=PICKED),
                    rate("gemma_jax_positions_total", labels=PICKED),
                ),
                "",
            )
        ],
    ),
    (
        "Scores that were NaN",
        "timeseries",
        "short",
        [(f"sum by (instance) (increase(gemma_jax_nan_scores_total{{{PICKED}}}[$__rate_interval]))", "{{instance}}")],
    ),
    (
        "Compile cache",
        "timeseries",
        "percentunit",
        [(f"avg by (instance) (gemma_jax_compile_cache_hit_ratio{{{PICKED}}})", "{{instance}}")],
    ),
    (
        "Programs in use, of those there can be",
        "timeseries",
        "short",
        [
            (f"sum(gemma_jax_programs{{{PICKED}}})", "in use"),
            (f"sum(gemma_jax_programs_bound{{{PICKED}}})", "bound"),
        ],
    ),
    (
        "Models come and go",
        "timeseries",
        "short",
        [
            (grown("gemma_jax_model_loads_total"), "{{model}} came"),
            (grown("gemma_jax_model_evictions_total"), "{{model}} went"),
        ],
    ),
    (
        "Requests that share a step",
        "timeseries",
        "short",
        [
            (quantile(0.5, "gemma_jax_step_rows", labels=PICKED), "half"),
            (quantile(0.95, "gemma_jax_step_rows", labels=PICKED), "95 %"),
        ],
    ),
    (
        "Copies",
        "timeseries",
        "Bps",
        [(rate("gemma_jax_copied_bytes_total", "direction", PICKED), "{{direction}}")],
    ),
    (
        "Host memory",
        "timeseries",
        "bytes",
        [(f"sum by (part) (gemma_jax_host_memory_bytes{{{PICKED}}})", "{{part}}")],
    ),
    (
        "Arrays",
        "timeseries",
        "short",
        [(f"sum by (instance) (gemma_jax_live_arrays{{{PICKED}}})", "{{instance}}")],
    ),
    (
        "Memory was short",
        "timeseries",
        "short",
        [
            (f"sum(increase(gemma_jax_memory_retries_total{{{PICKED}}}[$__rate_interval]))", "the device was full"),
            (f"sum(increase(gemma_jax_preemptions_total{{{PICKED}}}[$__rate_interval]))", "requests gave way"),
            (f"sum(increase(gemma_jax_kv_evictions_total{{{PICKED}}}[$__rate_interval]))", "conversations went"),
        ],
    ),
    (
        "Prefixes on the disk",
        "timeseries",
        "short",
        [
            (f"sum by (what) (increase(gemma_jax_prefix_store_files_total{{{PICKED}}}[$__rate_interval]))", "{{what}}"),
            (
                f"sum(increase(gemma_jax_prefix_store_tokens_total{{{PICKED}}}[$__rate_interval]))",
                "tokens not read again",
            ),
        ],
    ),
    (
        "Bytes of prefixes",
        "timeseries",
        "bytes",
        [
            (
                f"sum by (direction) (increase(gemma_jax_prefix_store_bytes_total{{{PICKED}}}[$__rate_interval]))",
                "{{direction}}",
            )
        ],
    ),
]


def panels() -> list[dict[str, object]]:
    """Every row with its panels, placed on Grafana's grid of 24 columns."""
    found: list[dict[str, object]] = []
    top = 0
    for title, row, width, height in (
        ("At a glance", EXECUTIVE, 6, 4),
        ("Objectives", list(burn_panels(objectives_of(text_of(OBJECTIVES), OBJECTIVES))), 6, 6),
        ("On call", ON_CALL, 12, 7),
        ("Looking closer", DEBUG, 12, 7),
    ):
        found.append({"id": len(found) + 1, "type": "row", "title": title, "gridPos": place(0, top, 24, 1)})
        top += 1
        for number, (name, kind, unit, drawn) in enumerate(row):
            x, y = number * width % 24, top + number * width // 24 * height
            found.append(
                {
                    "id": len(found) + 1,
                    "type": kind,
                    "title": name,
                    "datasource": SOURCE,
                    "gridPos": place(x, y, width, height),
                    "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                    "targets": [
                        {
                            "refId": chr(65 + at),
                            "datasource": SOURCE,
                            "expr": expression,
                            "legendFormat": legend,
                            "exemplar": "histogram_quantile" in expression,
                        }
                        for at, (expression, legend) in enumerate(drawn)
                    ],
                }
            )
        top += -(-len(row) * width // 24) * height
    return found


def place(x: int, y: int, wide: int, high: int) -> dict[str, int]:
    """Where a panel is on the grid."""
    return {"x": x, "y": y, "w": wide, "h": high}


def variable(name: str, label: str) -> dict[str, object]:
    """Return a variable that can be chosen at the top of the dashboard."""
    query = f"label_values(gemma_jax_{'requests_total' if name == 'app' else 'engine_up'}, {name})"
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": query,
        "definition": query,
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }


def dashboard() -> str:
    """The dashboard, as Grafana imports it."""
    made = {
        "uid": "langchain-gemma-jax",
        "title": "Gemma on JAX, in agents",
        "tags": ["gemma-jax", "langchain"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
                variable("job", "Job"),
                variable("instance", "Instance"),
                variable("app", "Application"),
            ]
        },
        "annotations": {"list": []},
        "panels": panels(),
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(dashboard())
    print(f"{TARGET.name}: {len(panels())} panels")
