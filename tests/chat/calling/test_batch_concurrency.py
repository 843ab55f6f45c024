"""How many calls of a batch run together."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import HumanMessage

from langchain_gemma_jax.chat.calling.batch_concurrency import AT_ONCE, together

WORDS = [chr(65 + number) * 3 for number in range(12)]


@pytest.mark.parametrize("in_tasks", [False, True])
async def test_a_batch_is_on_its_way_at_once(in_tasks, scripted):
    # Nobody is answered before all have asked.
    model, engine = scripted(*["Hello"] * len(WORDS))
    all_there = threading.Barrier(len(WORDS), timeout=60)
    engine.before = all_there.wait
    if in_tasks:
        with ThreadPoolExecutor(len(WORDS)) as pool:
            asyncio.get_running_loop().set_default_executor(pool)
            answers = await model.abatch(WORDS)
    else:
        answers = await asyncio.to_thread(model.batch, WORDS)
    assert [answer.content for answer in answers] == ["Hello"] * len(WORDS)


def test_a_limit_of_the_users_holds():
    assert together(None) == {"max_concurrency": AT_ONCE}
    assert together({"max_concurrency": 2, "tags": ["a"]}) == {"max_concurrency": 2, "tags": ["a"]}
    assert together([{"tags": ["a"]}, {"max_concurrency": None}]) == [
        {"max_concurrency": AT_ONCE, "tags": ["a"]},
        {"max_concurrency": AT_ONCE},
    ]


def test_a_failure_in_a_batch_is_its_own(scripted):
    model, _ = scripted("Hello", "Hello")
    image = [HumanMessage([{"type": "image", "url": "https://example.org/a.png"}])]
    first, failed, last = model.batch(["Hi", image, "Hi"], return_exceptions=True)
    assert (first.content, type(failed).__name__, last.content) == ("Hello", "MediaError", "Hello")
