"""Several conversations in a step of a llama.cpp library: its batches have a token of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Rows:
    """A context for several conversations, by the library's own functions."""

    def __init__(self, api: Any, context: Any, words: int, forget: Callable[[], None]) -> None:
        self._api, self._context, self._words, self._forget = api, context, words, forget

    def decode(self, prompts: list[list[int]], count: int) -> list[list[int]]:
        """Read all prompts in one batch, then decode a token of each in a batch, greedily."""
        self._forget()
        rows = range(len(prompts))
        given = [[(token, at, row) for at, token in enumerate(prompt)] for row, prompt in enumerate(prompts)]
        ends = [sum(map(len, given[: row + 1])) - 1 for row in rows]
        newest = self._run([each for row in given for each in row], ends)
        answers = [[token] for token in newest]
        held = [len(prompt) for prompt in prompts]
        for step in range(count - 1):
            newest = self._run([(newest[row], held[row] + step, row) for row in rows], list(rows))
            for row in rows:
                answers[row].append(newest[row])
        return answers

    def _run(self, tokens: list[tuple[int, int, int]], wanted: list[int]) -> list[int]:
        batch = self._api.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for index, (token, at, row) in enumerate(tokens):
            batch.token[index], batch.pos[index], batch.n_seq_id[index] = token, at, 1
            batch.seq_id[index][0], batch.logits[index] = row, index in wanted
        status = self._api.llama_decode(self._context, batch)
        self._api.llama_batch_free(batch)
        if status:
            raise RuntimeError(f"llama_decode of {len(tokens)} tokens: expected the status 0, found {status}.")
        scores = (self._api.llama_get_logits_ith(self._context, place) for place in wanted)
        return [int(np.argmax(np.ctypeslib.as_array(each, (self._words,)))) for each in scores]
