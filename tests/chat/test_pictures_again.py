"""Conversations with pictures, from users and from tools: a run that remembers, beside runs that remember nothing.

A cold run of the very ids that were read gives the very ids that were said. A cold run of the conversation as text,
such as another process makes it, encodes the model's own answers anew, without white space around them, and may read
other ids: then, and only then, it may say something else.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.engine.requests.prompt import MediaSpan, Prompt, TokenSpan
from tests.media.samples import base64_of, encoded, pixels

pytest.importorskip("PIL")

SIZES = [(24, 40), (32, 32), (50, 9), (7, 70), (64, 48)]
PICTURES = [
    {"type": "image", "base64": base64_of(encoded(array=pixels(*size, seed))), "mime_type": "image/png"}
    for seed, size in enumerate(SIZES)
]
WORDS = ["a", "map", "of", "the", "old", "town", "with", "red", "roofs", "near", "water"]
FIRST, LAST = 4, 286  # ids that are text
TIE = 1e-3  # two scores that are no further apart count as equal: rounding decides


class Watched:
    """Questions to an engine and its answers, in the order of the calls."""

    def __init__(self, engine, monkeypatch) -> None:
        self.engine, self.calls = engine, []
        self._submit = engine.submit

        def submit(served, prompt, sampling=None, **how):
            generation = self._submit(served, prompt, sampling, **how)
            self.calls.append((served, prompt, sampling, generation))
            return generation

        monkeypatch.setattr(engine, "submit", submit)

    def last(self) -> tuple[Prompt, list[int]]:
        _, prompt, _, generation = self.calls[-1]
        return prompt if isinstance(prompt, Prompt) else Prompt((TokenSpan(tuple(prompt)),)), list(
            generation.result().ids
        )

    @property
    def tokenizer(self):
        return self.calls[-1][0].model.tokenizer

    def cold(self, scope: str) -> list[int]:
        """Return the answer to the last prompt in a scope that has read nothing."""
        served, prompt, sampling, _ = self.calls[-1]
        return list(self._submit(served, prompt, sampling, scope=scope).result().ids)


def talk(rng: random.Random) -> list:
    """The next words and pictures of a user, and of a tool that was called."""

    def parts(most: int) -> list:
        shown = rng.sample(PICTURES, rng.randint(0, most))
        said = [{"type": "text", "text": " ".join(rng.choices(WORDS, k=rng.randint(1, 5)))}]
        found = shown + said
        rng.shuffle(found)
        return found

    if rng.random() < 0.4:
        call = {"name": "look", "args": {"at": rng.choice(WORDS)}, "id": f"c{rng.randint(0, 9)}"}
        return [HumanMessage("Look."), AIMessage("", tool_calls=[call]), ToolMessage(parts(2), tool_call_id=call["id"])]
    return [HumanMessage(parts(2))]


class Told:
    """The words that were said, and by how much each token was the best one."""

    def __init__(self, ids: list[int], answer: AIMessage) -> None:
        self.ids = ids
        best = [
            [each["logprob"] for each in place["top_logprobs"]]
            for place in answer.response_metadata["logprobs"]["content"]
        ]
        self.margins = [abs(first - second) for first, second in best]

    def equals(self, found: list[int]) -> bool:
        """Return True if the same was said, up to a tie, after which everything may differ."""
        at = next((at for at, (one, two) in enumerate(zip(self.ids, found, strict=False)) if one != two), None)
        return self.ids == found if at is None else self.margins[at] < TIE


def shown(prompt: Prompt, tokenizer) -> list[str | bytes]:
    """A prompt as text, without the white space that formats take away around answers; and its pictures' digests."""
    spans, found = prompt.spans, []
    for is_text, group in itertools.groupby(spans, lambda span: isinstance(span, TokenSpan)):
        if is_text:
            text = tokenizer.decode([each for span in group for each in span.ids], keep_control=True)
            found.append("".join(text.split()))
        else:
            found += [span.digest for span in group]
    return found


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("dialect", ["gemma", "gemma4"])
@pytest.mark.long
def test_what_is_read_decides_what_is_said(dialect, count, seeing_folder_of, running, monkeypatch):
    watched, rng, seen = Watched(running, monkeypatch), random.Random(count), Counter()
    settings = {"dtype": "float32", "max_tokens": 6, "temperature": 0, "logprobs": True, "top_logprobs": 2}
    model = ChatGemmaJax(model=str(seeing_folder_of(dialect)), **settings)
    scopes = (f"{dialect} {count} {number}" for number in itertools.count())
    for _ in range(count // 2):
        messages, scope, answers = [], next(scopes), []
        for _ in range(3):
            messages += talk(rng)
            bias = {
                rng.randint(FIRST, LAST): 6.0 for _ in range(40)
            }  # without which a model that is random repeats itself
            warm = model.invoke(messages, scope=scope, logit_bias=bias)
            prompt, ids = watched.last()
            told = Told(ids, warm)
            assert told.equals(watched.cold(next(scopes))), "the same ids were read"
            anew = model.invoke(messages, scope=next(scopes), logit_bias=bias)
            other, found = watched.last()
            seen["turns"] += 1
            seen["pictures"] += sum(isinstance(span, MediaSpan) for span in prompt.spans)
            if other.keys == prompt.keys:
                seen["read alike"] += 1
                assert told.equals(found)
            else:
                seen["read otherwise"] += 1
                seen["and said otherwise"] += anew.text != warm.text
                assert shown(other, watched.tokenizer) == shown(prompt, watched.tokenizer)
                first = next(
                    at for at, (one, two) in enumerate(zip(prompt.keys, other.keys, strict=False)) if one != two
                )
                assert any(first in answer for answer in answers), "only its own answers are read otherwise"
            answers.append(range(len(prompt), len(prompt) + len(ids)))
            messages.append(warm)
    assert seen["turns"] == 3 * (count // 2), seen
    assert seen["read alike"] >= count // 2, "a first turn has no answer that could be encoded again"
