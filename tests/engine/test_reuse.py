"""Reuse never changes an answer, and reads exactly the tokens that it has to."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.conversations import kv_store
from langchain_gemma_jax.engine.conversations.kv_store import WORTH_SHARING
from langchain_gemma_jax.engine.requests.prompt import MediaSpan, Prompt, TokenSpan
from langchain_gemma_jax.errors import CancelledRequestError
from langchain_gemma_jax.kernels import library
from langchain_gemma_jax.kernels.library import Kernels
from langchain_gemma_jax.kernels.products import kernels_run
from tests.engine.tiny import CONTEXT, LADDERS, LAST, ONE_SIZE, kv_store_of, settle, text

SLACK = 16
PAGE = 8  # tokens, in these tests
KEPT = 4  # turns, by default


def greedy(count, **options):
    return Sampling(max_tokens=count, ignore_eos=True, **options)


# What has to be read, by the rule as it is written down: a model of it in lists of numbers.


@dataclass(eq=False)
class Held:
    ids: list[int]
    scope: str
    turns: list[int] = field(default_factory=list)  # lengths whose windows are kept, beside that of the end
    used: int = 0
    pages: set[int] = field(default_factory=set)  # of the local layers


class Rule:
    """Which tokens are resident, which of them a prompt can take over, and what is left to read."""

    def __init__(self, window: int | None, ladders: Ladders) -> None:
        self.window, self.ladders = window, ladders
        self.held: list[Held] = []
        self.clock = 0

    def run(self, prompt: Sequence[int], answer: int, scope: str, system: int = 0) -> tuple[Held, int]:
        """A request that makes so many tokens. Gives who holds it, without the answer yet, and the tokens reused."""
        del answer
        mine, reused = self._take_over(list(prompt), scope)
        self._keep(mine)
        if len(prompt) - reused > 1:
            if reused < system < len(prompt):
                self._write(mine, prompt[reused:system])
                self._keep(mine)
            self._write(mine, prompt[len(mine.ids) :])
            self._keep(mine)
        else:
            self._write(mine, prompt[-1:])
        return mine, reused

    def answered(self, mine: Held, answer: Sequence[int]) -> None:
        """The answer's tokens are resident too, but the last one, which nobody has read."""
        self._write(mine, answer[:-1])

    def _take_over(self, prompt: list[int], scope: str) -> tuple[Held, int]:
        best, key = None, (0, False, 0)
        for held in self.held:
            if held.scope != scope:
                continue
            same = next((i for i, (a, b) in enumerate(zip(prompt[:-1], held.ids, strict=False)) if a != b), None)
            length = self._reach(held, min(len(prompt) - 1, len(held.ids)) if same is None else same)
            mine = (length, len(held.ids) - length <= SLACK, held.used)
            if length and mine > key:
                best, key = held, mine
        if best is None or (not key[1] and key[0] < WORTH_SHARING):
            fresh = Held([], scope)
            self.held.append(fresh)
            return fresh, 0
        length, in_place = key[:2]
        turns = [turn for turn in best.turns if turn <= length]
        self._touch(best)
        if in_place:
            del best.ids[length:]
            best.turns = turns
            best.pages &= self._wanted(best)
            return best, length
        branch = Held(best.ids[:length], scope, turns)
        branch.pages = best.pages & self._wanted(branch)
        self.held.append(branch)
        return branch, length

    def _window(self, length: int) -> set[int]:
        """The pages of the positions that what comes behind so many tokens looks at."""
        if self.window is None:
            return set()
        return {at // PAGE for at in range(max(0, length - self.window + 1), length)}

    def _reach(self, held: Held, length: int) -> int:
        return next(end for end in range(length, -1, -1) if self._window(end) <= held.pages)

    def _wanted(self, held: Held) -> set[int]:
        """The pages that are worth keeping: the next turn may leave out some tokens before the end of one."""
        ends = {max(0, end - less) for end in (*held.turns, len(held.ids)) for less in range(SLACK + 1)}
        return set().union(*map(self._window, ends))

    def _keep(self, held: Held) -> None:
        end = len(held.ids)
        if self.window is not None and end and end not in held.turns:
            held.turns = sorted([*held.turns, end])
            if len(held.turns) > 1 + KEPT:
                del held.turns[1]
            held.pages &= self._wanted(held)

    def _write(self, held: Held, ids: Sequence[int]) -> None:
        new = (
            {at // PAGE for at in range(len(held.ids), len(held.ids) + len(ids))} if self.window is not None else set()
        )
        held.ids.extend(ids)
        held.pages = (held.pages | new) & self._wanted(held)
        self._touch(held)

    def _touch(self, held: Held) -> None:
        self.clock += 1
        held.used = self.clock

    def look(self, engine) -> None:
        """Return what is there, as the engine has it: after a cancellation, which comes at some moment."""
        settle(engine)
        residents = kv_store_of(engine).index.residents
        self.held = [Held(list(r.keys), r.scope, list(r.turns), r.last_used, set(r.local)) for r in residents]
        self.clock = max((held.used for held in self.held), default=0)


class Conversations:
    """Random conversations with an engine, each answer checked against a cold run and the rule."""

    EDGES = (1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 39, 40, 41, 63, 64, 65, 80, 100)

    def __init__(self, engine, model, cold, rng: random.Random, ladders: Ladders) -> None:
        self.engine, self.cold, self.rng = engine, cold, rng
        self.served = engine.serve(model)
        windows = [layer.window for layer in model.config.layers if layer.window is not None]
        self.rule = Rule(max(windows, default=None), ladders.for_context(CONTEXT))
        self.systems = [text(rng, count) for count in (5, 18, 30, 47)]
        self.histories: list[tuple[list[int], str, int]] = []
        self.reused = self.prompts = self.cancelled = 0

    def converse(self, number: int) -> None:
        rng = self.rng
        scope = rng.choice(["", "", "a", "b"])
        system = rng.choice(self.systems) if rng.random() < 0.7 else []
        mark = len(system) if rng.random() < 0.5 else 0
        history = list(system)
        if self.histories and rng.random() < 0.3:
            history, scope, mark = rng.choice(self.histories)  # another branch of an old one
            history = history[: rng.randint(1, len(history))]
        for turn in range(rng.randint(1, 4)):
            prompt, what = self._prompt(history)
            self._ask(prompt, scope, min(mark, len(prompt)), f"conversation {number}, turn {turn}, {what}")
            history = self.histories[-1][0]

    def _prompt(self, history: list[int]) -> tuple[list[int], str]:
        rng = self.rng
        way = rng.choice(["go on", "go on", "go on", "edit", "retry", "edge", "edge"])
        if way == "edit":
            history = history[: rng.randint(0, len(history))]
        if way == "retry" and history:
            return history[: CONTEXT - 1], way
        prompt = history + text(rng, rng.randint(1, 14))
        if way == "edge":
            length = rng.choice(self.EDGES)
            prompt = (history + text(rng, length))[:length]
        if len(prompt) > CONTEXT - 4:
            prompt = prompt[: rng.choice([CONTEXT - 1, CONTEXT - 2, rng.randint(20, CONTEXT - 4)])]
        return prompt, way

    def _ask(self, prompt: list[int], scope: str, mark: int, what: str) -> None:
        if self.rng.random() < 0.1:
            self._cancel(prompt, scope)
        count = min(self.rng.choice([1, 1, 2, 3, 5, 9, 17]), CONTEXT - len(prompt))
        held, reused = self.rule.run(prompt, count, scope, mark)
        before = self.engine.report()
        options = {"logprobs": self.rng.random() < 0.5}
        done = self.engine.submit(self.served, prompt, greedy(count, **options), scope=scope, system=mark).result()
        assert len(done.ids) == count, what
        self.cold.expect(prompt, done, what)
        after = self.engine.report()
        assert done.reused_tokens == reused, what
        self.rule.answered(held, done.ids)
        assert after.prefilled_tokens - before.prefilled_tokens == len(prompt) - done.reused_tokens, what
        assert after.reused_tokens - before.reused_tokens == done.reused_tokens, what
        assert after.generated_tokens - before.generated_tokens == count, what
        self.histories.append((prompt + list(done.ids), scope, mark))
        self.prompts += len(prompt)
        self.reused += done.reused_tokens

    def _cancel(self, prompt: list[int], scope: str) -> None:
        generation = self.engine.submit(self.served, prompt, greedy(CONTEXT), scope=scope)
        pieces = self.rng.randint(0, 3)
        for piece, _ in enumerate(generation):
            if piece >= pieces:
                break
        generation.cancel()
        try:
            generation.result()
        except CancelledRequestError:
            self.cancelled += 1
        self.rule.look(self.engine)


@pytest.mark.long
@pytest.mark.parametrize("count", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_random_conversations_get_the_tokens_of_a_cold_run_and_read_no_more_than_the_rule_says(
    engine_of, tiny_model, cold, rng, monkeypatch, count
):
    monkeypatch.setattr(kv_store, "HEADROOM", 4)  # so that conversations grow in the midst of an answer
    conversations = Conversations(engine_of(), tiny_model, cold, rng, LADDERS)
    for number in range(count):
        conversations.converse(number)
    cold.check()
    assert conversations.cancelled > count // 30
    assert conversations.reused > 0.4 * conversations.prompts


by_kernels = pytest.mark.skipif(not kernels_run(), reason="no kernels run here")
TWO_SIZES = Ladders(chunks=(16,), capacities=(32, CONTEXT), rows=(1,))


@pytest.mark.long
@pytest.mark.parametrize("count", [20, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "ladders"),
    [
        ("all global", ONE_SIZE),
        ("shared KV", ONE_SIZE),
        ("rounded", ONE_SIZE),
        pytest.param("by kernels", TWO_SIZES, marks=by_kernels),
        pytest.param("rounded by kernels", TWO_SIZES, marks=by_kernels),
        pytest.param("a wide window", TWO_SIZES, marks=pytest.mark.slow),
    ],
)
def test_so_do_conversations_with_models_of_other_layers(name, ladders, engine_of, model_of, cold_of, rng, count):
    cold, model = cold_of(name), model_of(name)
    conversations = Conversations(engine_of(ladders=ladders), model, cold, rng, ladders)
    for number in range(count):
        conversations.converse(number)
    cold.check()
    assert conversations.reused > 0.3 * conversations.prompts


@pytest.mark.long
@by_kernels
def test_without_kernels_the_same_tokens_come_and_as_many_are_reused(engine_of, model_of, rng, monkeypatch):
    """A model whose recipe asks for kernels, on a machine that has them and where they are off."""
    prompt, tail = text(rng, 21), text(rng, 5)

    def conversation():
        engine = engine_of(ladders=Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1,)))
        served = engine.serve(model_of("by kernels"))
        first = engine.submit(served, prompt, greedy(6)).result()
        second = engine.submit(served, [*prompt, *first.ids, *tail], greedy(6)).result()
        return first.ids, second.ids, second.reused_tokens

    expected = conversation()
    assert expected[2] >= len(prompt)
    monkeypatch.setattr(library, "_known", Kernels(None, "GEMMA_JAX_KERNELS=off"))
    monkeypatch.setattr(jax.ffi, "ffi_call", lambda name, *_, **__: pytest.fail(f"{name} was called"))
    assert conversation() == expected


@pytest.mark.long
def test_pages_that_rejected_drafts_were_written_to_are_continued_from_where_they_may_be(
    engine_of, tiny_model, cold, rng
):
    engine = engine_of(drafts=True)
    served = engine.serve(tiny_model)
    often, seldom = LAST, LAST - 1
    rejected = 0
    for seed in range(12):
        prompt = text(rng, 20) + [often] * 14
        one_letter = Sampling(
            logit_bias={often: 100.0, seldom: 96.0}, temperature=1.0, seed=seed, max_tokens=60, stop_ids=(seldom,)
        )
        done = engine.submit(served, prompt, one_letter).result()
        rejected += done.drafted_tokens - done.accepted_tokens
        held = [*prompt, *done.ids[:-1]]
        back = [*held[: len(held) - SLACK], *text(rng, 3)]
        cold.expect(back, engine.submit(served, back, greedy(3, logprobs=True)).result(), f"seed {seed}")
    assert rejected > 12


def test_the_digest_of_what_stands_in_a_prompt_decides_what_is_reused(engine_of, tiny_model):
    """Two images are read as the same placeholders, and what was read of one is nothing to the other."""
    engine = engine_of(ladders=ONE_SIZE)
    served = engine.serve(tiny_model)
    before, image, behind = (2, 10, 11, 12), (7,) * 5, (20, 21, 22)

    def ask(middle, scope):
        prompt = Prompt((TokenSpan(before), middle, TokenSpan(behind)))
        return engine.submit(served, prompt, greedy(2), scope=scope).result()

    whole = len(before) + len(image) + len(behind) - 1  # the last token is always read
    cat, dog, words = MediaSpan(image, b"a cat"), MediaSpan(image, b"a dog"), TokenSpan(image)
    for number, (first, second, reused) in enumerate(
        [(cat, cat, whole), (cat, dog, len(before)), (cat, words, len(before)), (words, cat, len(before))]
    ):
        cold, warm = ask(first, str(number)), ask(second, str(number))
        assert (cold.reused_tokens, warm.reused_tokens) == (0, reused), number
        assert warm.ids == cold.ids, "this model sees the placeholders alone"
