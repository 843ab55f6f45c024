"""The cost and the ending of an answer, in LangChain's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata

from langchain_gemma_jax.chat.answering.cut_off import KEY
from langchain_gemma_jax.chat.answering.outcome import Outcome
from langchain_gemma_jax.chat.history.searches import SEARCH
from langchain_gemma_jax.engine.requests.request import Completion, FinishReason, TokenLogprobs
from langchain_gemma_jax.provider import PROVIDER

if TYPE_CHECKING:
    from langchain_gemma_jax.models.tokenizer import Tokenizer

_NORMALIZED = {"stop": "stop", "length": "length", "tool_calls": "tool_call"}  # LangChain's words, for every provider


def usage(outcome: Outcome) -> UsageMetadata:
    """Return how many tokens were read and written, counted as the engine did.

    After searches for tools, those read are of the last prompt, which has all of it; those written are of all steps.
    """
    done = outcome.done
    generated = done.generated_tokens + sum(each.tokens for each in outcome.before)
    read: dict[str, int] = {"cache_read": done.reused_tokens, **outcome.media_tokens}  # "image" is not in its type
    written = {"reasoning": _thought_tokens(outcome), **_drafts(done)}  # drafts are not in its type either
    return UsageMetadata(
        input_tokens=done.prompt_tokens,
        output_tokens=generated,
        total_tokens=done.prompt_tokens + generated,
        input_token_details=cast("InputTokenDetails", read),
        output_token_details=cast("OutputTokenDetails", written),
    )


def _drafts(done: Completion) -> dict[str, int]:
    """Return how many tokens each source drafted, and how many of them were accepted; nothing of one that was idle."""
    found: dict[str, int] = {}
    for source, count in done.drafts.items():
        found |= {f"drafted_from_{source}": count.drafted, f"accepted_from_{source}": count.accepted}
    return found


def ending(outcome: Outcome) -> dict[str, Any]:
    """Return ``response_metadata``, but for the log-probabilities."""
    done, answer = outcome.done, outcome.shown
    reason: str = done.finish_reason
    if done.finish_reason is FinishReason.STOP and answer.calls:
        reason = "tool_calls"
    times = done.timings
    found: dict[str, Any] = {
        "model_name": outcome.options.model,
        "model_provider": PROVIDER,
        "finish_reason": str(reason),
        "normalized_finish_reason": _NORMALIZED.get(str(reason), "other"),
        "timings": {
            "queue_s": times.queued_s,
            "prefill_s": times.prefill_s,
            "first_token_s": times.first_token_s,
            "decode_s": max(0.0, times.total_s - times.first_token_s),
            "total_s": times.total_s,
            "reused_tokens": done.reused_tokens,
            "drafted_tokens": done.drafted_tokens,
            "accepted_tokens": done.accepted_tokens,
            "forced_tokens": done.forced_tokens,
            "bucket": done.bucket,
            "compiled": done.compiled,
        },
    }
    if isinstance(done.stop, str):
        found["stop"] = done.stop
    broken = any(each.unfinished for each in answer.invalid) or not (done.complete or answer.calls)
    if broken and (cut_off := outcome.limits.reason(done)) is not None:
        found[KEY] = cut_off
    if outcome.searches:
        found[SEARCH] = [each.as_metadata for each in outcome.searches]
    if outcome.options.step is not None:
        found["route"] = outcome.options.step.as_metadata
    return found


def spelled(tokenizer: Tokenizer, tokens: Iterable[TokenLogprobs]) -> list[dict[str, Any]]:
    """Return log-probabilities in OpenAI's form."""
    return [
        _token(tokenizer, each.id, each.logprob)
        | {"top_logprobs": [_token(tokenizer, token, logprob) for token, logprob in each.top]}
        for each in tokens
    ]


def with_logprobs(metadata: Mapping[str, Any], logprobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return metadata with log-probabilities, if there are any."""
    return {**metadata, "logprobs": {"content": list(logprobs)}} if logprobs else dict(metadata)


def _token(tokenizer: Tokenizer, token: int, logprob: float) -> dict[str, Any]:
    data = tokenizer.token_bytes(token)
    name = tokenizer.control_name(token)
    return {"token": name or data.decode("utf-8", "replace"), "bytes": list(data), "logprob": logprob}


def _thought_tokens(outcome: Outcome) -> int:
    """Return how many of the generated tokens are thoughts, the control tokens around them included."""
    names = outcome.prompt.thought
    if names is None:
        return 0
    begin, end = (outcome.tokenizer.control_id(name) for name in names)
    inside, count = outcome.prompt.in_thought, 0
    for token in outcome.done.ids:
        inside = inside or token == begin
        count += inside
        if token == end:
            inside = False
    return count
