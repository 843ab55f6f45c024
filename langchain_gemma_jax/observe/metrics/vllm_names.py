"""vLLM's names for the engine's numbers, for dashboards, routers and autoscalers that are written for those names."""

from __future__ import annotations

from langchain_gemma_jax.engine.api.report import Report
from langchain_gemma_jax.observe.metrics.families import CANCELLED, WELL, Family, kv_usage, of_model

LABELS = ("model_name", "engine")
ALL = "(all)"  # the model's name for numbers of the whole engine, when it serves several models

LATENCIES = {
    "vllm:time_to_first_token_seconds": "first_token",
    "vllm:inter_token_latency_seconds": "token",
    "vllm:e2e_request_latency_seconds": "total",
    "vllm:request_queue_time_seconds": "queue",
    "vllm:request_prefill_time_seconds": "prefill",
    "vllm:request_decode_time_seconds": "decode",
    "vllm:request_inference_time_seconds": "inference",
    "vllm:request_time_per_output_token_seconds": "per_token",
}


def vllm_families(report: Report | None) -> list[Family]:
    """Return those of vLLM's metrics that have a meaning for this engine."""
    running = Family("vllm:num_requests_running", "gauge", "Requests that run.", LABELS)
    waiting = Family("vllm:num_requests_waiting", "gauge", "Requests that wait.", LABELS)
    usage = Family("vllm:kv_cache_usage_perc", "gauge", "The share of the KV memory in use, from 0 to 1.", LABELS)
    preemptions = Family("vllm:num_preemptions", "counter", "Requests that gave up their memory.", LABELS)
    queries = Family("vllm:prefix_cache_queries", "counter", "Prompt tokens that were looked up.", LABELS)
    hits = Family("vllm:prefix_cache_hits", "counter", "Prompt tokens whose KV was there.", LABELS)
    prompt = Family("vllm:prompt_tokens", "counter", "Prompt tokens.", LABELS)
    generated = Family("vllm:generation_tokens", "counter", "Generated tokens.", LABELS)
    sources = Family("vllm:prompt_tokens_by_source", "counter", "Where their KV came from.", (*LABELS, "source"))
    prompts = Family("vllm:request_prompt_tokens", "histogram", "Prompt tokens of a request.", LABELS)
    answers = Family("vllm:request_generation_tokens", "histogram", "Generated tokens of a request.", LABELS)
    success = Family("vllm:request_success", "counter", "Requests that are over.", (*LABELS, "finished_reason"))
    corrupted = Family("vllm:corrupted_requests", "counter", "Requests that ended by scores that are NaN.", LABELS)
    latencies = {name: Family(name, "histogram", "See vLLM's metric.", LABELS) for name in LATENCIES}
    if report is not None:
        names = {model.name for model in report.models}
        engine = (names.pop() if len(names) == 1 else ALL, "0")
        running.add(report.running, *engine)
        waiting.add(report.waiting, *engine)
        usage.add(kv_usage(report), *engine)
        preemptions.add(report.preemptions, *engine)
        corrupted.add(report.nan_scores, *engine)
        for model, views in of_model(report.series.items()).items():
            labels = (model, "0")
            for view in views:
                read, reused = view.tokens["read"], view.tokens["reused"]
                queries.add(read + reused, *labels)
                hits.add(reused, *labels)
                prompt.add(read + reused, *labels)
                generated.add(view.tokens["generated"], *labels)
                sources.add(read, *labels, "local_compute").add(reused, *labels, "local_cache_hit")
                prompts.spread(view.prompts, *labels)
                answers.spread(view.answers, *labels)
                for outcome, count in view.outcomes.items():
                    success.add(count, *labels, _reason(outcome))
                for name, ours in LATENCIES.items():
                    latencies[name].spread(view.cold[ours].plus(view.steady[ours]), *labels)
    engine_wide = [running, waiting, usage, preemptions, corrupted, queries, hits]
    return [*engine_wide, prompt, generated, sources, prompts, answers, success, *latencies.values()]


def _reason(outcome: str) -> str:
    if outcome in WELL:
        return outcome
    return "abort" if outcome == CANCELLED else "error"
