"""What an answer cost and how it ended, in LangChain's words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata

from langchain_gemma_jax.chat.answering.cut_off import KEY
from langchain_gemma_jax.engine.requests.request import Completion, FinishReason, TokenLogprobs

if TYPE_CHECKING:
    from langchain_gemma_jax.chat.calling.call import Call
    from langchain_gemma_jax.models.tokenizer import Tokenizer

PROVIDER = "gemma_jax"


def usage(call: Call, done: Completion) -> UsageMetadata:
    """Tokens, counted as the engine did."""
    return UsageMetadata(
        input_tokens=done.prompt_tokens,
        output_tokens=done.generated_tokens,
        total_tokens=done.prompt_tokens + done.generated_tokens,
        input_token_details=InputTokenDetails(cache_read=done.reused_tokens),
        output_token_details=OutputTokenDetails(reasoning=_thought_tokens(call, done.ids)),
    )


def ending(call: Call, done: Completion) -> dict[str, Any]:
    """``response_metadata``, but for the log-probabilities."""
    reason: str = done.finish_reason
    if done.finish_reason is FinishReason.STOP and call.answer.calls:
        reason = "tool_calls"
    times = done.timings
    found: dict[str, Any] = {
        "model_name": call.options.model,
        "model_provider": PROVIDER,
        "finish_reason": str(reason),
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
    answer = call.answer
    broken = any(each.unfinished for each in answer.invalid) or not (done.complete or answer.calls)
    if broken and (cut_off := call.limits.reason(done)) is not None:
        found[KEY] = cut_off
    if call.options.step is not None:
        found["route"] = call.options.step.told
    return found


def logprobs(tokenizer: Tokenizer, found: Iterable[TokenLogprobs]) -> dict[str, Any]:
    """Log-probabilities in OpenAI's form, under ``logprobs``; nothing if there are none."""
    content = [
        _token(tokenizer, each.id, each.logprob)
        | {"top_logprobs": [_token(tokenizer, token, logprob) for token, logprob in each.top]}
        for each in found
    ]
    return {"logprobs": {"content": content}} if content else {}


def _token(tokenizer: Tokenizer, token: int, logprob: float) -> dict[str, Any]:
    data = tokenizer.token_bytes(token)
    name = tokenizer.control_name(token)
    return {"token": name or data.decode("utf-8", "replace"), "bytes": list(data), "logprob": logprob}


def _thought_tokens(call: Call, ids: Sequence[int]) -> int:
    """How many of the generated tokens are thoughts, the control tokens around them included."""
    names = call.prompt.thought
    if names is None:
        return 0
    begin, end = (call.model.tokenizer.control_id(name) for name in names)
    inside, count = call.prompt.in_thought, 0
    for token in ids:
        inside = inside or token == begin
        count += inside
        if token == end:
            inside = False
    return count
