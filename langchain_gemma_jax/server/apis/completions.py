"""OpenAI's ``/v1/completions``: texts that a model goes on with, for base models and for filling in."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.continued_text import ContinuedText
from langchain_gemma_jax.server.apis.fields import as_list, as_object, as_text, as_truth, refuse_unknown
from langchain_gemma_jax.server.apis.openai_parts import (
    AS_THEY_ARE,
    EVENTS,
    NO_EFFECT,
    data_event,
    new_id,
    sampling_settings,
)
from langchain_gemma_jax.server.apis.side_by_side import MOST, all_of, answer_count, as_they_come, seed_of

_KNOWN = {
    "model", "prompt", "suffix", "max_tokens", "n", "best_of", "echo", "stop", "stream", "logprobs", "logit_bias",
    *AS_THEY_ARE, *NO_EFFECT,
}  # fmt: skip
_USUAL = 16  # tokens of an answer, as OpenAI has it: a base model never ends by itself
_END = b"data: [DONE]\n\n"


class Completions:
    """Continuations of texts, by ``/v1/completions``."""

    streams_as = EVENTS

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]] | AsyncGenerator[bytes, None]:
        """Return what follows each text, whole or in the pieces of a stream.

        Raises:
            InputError: a field is unknown, or its value is not possible.
        """
        refuse_unknown(body, _KNOWN)
        if body.get("logprobs") is not None:
            raise InputError("logprobs: only /v1/chat/completions returns them. Leave it out.")
        prompts, count = _prompts(body), answer_count(body.get("n"))
        if body.get("best_of") not in (None, count):
            raise InputError(
                f"best_of: expected {count}, as n says: no answer is dropped. Found {body['best_of']!r:.60}."
            )
        if len(prompts) * count > MOST:
            raise InputError(f"prompt, n: expected at most {MOST} answers, found {len(prompts) * count}.")
        suffix = None if body.get("suffix") is None else as_text(body["suffix"], "suffix")
        asked = [_options(body, caller, number) for number in range(count)]
        texts = [ContinuedText(prompt, suffix, each) for prompt in prompts for each in asked]
        echoes = as_truth(body.get("echo"), "echo")
        before = [prompt if echoes else "" for prompt in prompts for _ in asked]
        head = {"id": new_id("cmpl-"), "object": "text_completion", "created": int(time.time())}
        head["model"] = asked[0].model
        if as_truth(body.get("stream"), "stream"):
            shown = as_object(body.get("stream_options") or {}, "stream_options")
            usage = as_truth(shown.get("include_usage"), "stream_options.include_usage")
            return _stream(texts, before, head, usage=usage)
        return _whole(texts, before, head)


def _options(body: Mapping[str, Any], caller: Caller, number: int) -> Options:
    given: dict[str, Any] = {"model": as_text(body.get("model"), "model"), **sampling_settings(body)}
    given["max_tokens"] = _USUAL if body.get("max_tokens") is None else body["max_tokens"]
    given["seed"] = seed_of(body.get("seed"), number)
    given["stop"] = body.get("stop")
    return caller.options(given)


def _prompts(body: Mapping[str, Any]) -> list[str]:
    given = body.get("prompt")
    listed = [given] if isinstance(given, str) else as_list(given, "prompt", MOST)
    if not listed:
        raise InputError("prompt: expected a text, or texts; found none.")
    for number, each in enumerate(listed):
        if isinstance(each, int | list):
            raise InputError(
                f"prompt[{number}]: expected a text, found token ids: they are of another model's vocabulary."
            )
    return [as_text(each, f"prompt[{number}]") for number, each in enumerate(listed)]


async def _whole(texts: Sequence[ContinuedText], before: Sequence[str], head: dict[str, Any]) -> dict[str, Any]:
    found = await all_of([each.whole() for each in texts])
    choices = [_choice(n, before[n] + done.text, str(done.finish_reason)) for n, done in enumerate(found)]
    return {**head, "choices": choices, "usage": _usage(found)}


async def _stream(
    texts: Sequence[ContinuedText], before: Sequence[str], head: dict[str, Any], *, usage: bool
) -> AsyncGenerator[bytes, None]:
    counted = {"usage": None} if usage else {}
    ended: list[Completion] = []
    for number, text in enumerate(before):
        if text:
            yield data_event(head | {"choices": [_choice(number, text, None)]} | counted)
    async with aclosing(as_they_come([each.pieces() for each in texts])) as coming:
        async for number, piece in coming:
            if isinstance(piece, Completion):
                ended.append(piece)
                choice = _choice(number, "", str(piece.finish_reason))
            else:
                choice = _choice(number, piece, None)
            yield data_event(head | {"choices": [choice]} | counted)
    if usage:
        yield data_event(head | {"choices": [], "usage": _usage(ended)})
    yield _END


def _choice(number: int, text: str, reason: str | None) -> dict[str, Any]:
    return {"index": number, "text": text, "logprobs": None, "finish_reason": reason}


def _usage(completions: Sequence[Completion]) -> dict[str, Any]:
    read, written = sum(done.prompt_tokens for done in completions), sum(done.generated_tokens for done in completions)
    cached = sum(done.reused_tokens for done in completions)
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
