"""An engine without a model: it answers what it is told to, token by token, as the real one would deliver it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.api.live_view import LiveView
from langchain_gemma_jax.engine.base.events import Events, StepRouted
from langchain_gemma_jax.engine.base.guards import Guards
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.requests.clock import Clock, Steps
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.requests.request import FinishReason, Request, RequestSpec, TokenLogprobs
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.engine.steps.postprocess import accept
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.media_support import MediaSupport
from langchain_gemma_jax.models.tokenizer import StreamDecoder
from langchain_gemma_jax.models.vision.model_media import ModelMedia, ReadsTensor
from tests.dialects.vocabulary import tokenizer

T = TypeVar("T")
TURN_END = "<turn|>"


@dataclass
class ScriptedEngine:
    """Says ``answers``, one a request; the control strings in them are control tokens. Nothing is generated."""

    answers: list[str] = field(default_factory=list)
    generation_defaults: dict[str, object] = field(default_factory=dict)
    max_context: int = 4096
    at_once: int = 1  # tokens in a piece
    submitted: list[dict[str, Any]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    routes: list[StepRouted] = field(default_factory=list)
    events: Events = field(default_factory=Events)
    companions: dict[Callable[[], object], object] = field(default_factory=dict)
    silent: bool = False  # it never answers
    guards: Guards = field(default_factory=lambda: Guards(Settings))
    kept: list[float | None] = field(default_factory=list)  # how long its model is to stay
    before: Callable[[], None] = lambda: None  # happens when something is submitted
    support: MediaSupport | None = None  # what it can see and hear

    def __post_init__(self) -> None:
        self.events.subscribe(StepRouted, self.routes.append)
        config, recipe = published("gemma-3-270m").replace(max_context=self.max_context), Recipe(dtype="float32")
        model = Model(Gemma(config), {"layers": []}, tokenizer(), recipe, "scripted", self.generation_defaults)
        encoders = None if self.support is None else ModelMedia(self.support, (), _no_files)
        self.model = replace(model, encoders=encoders)
        self.served = Served(self.model, 1, self.max_context, frozenset(tokenizer().eos_ids))

    def load(self, source: str, **how: object) -> Served:
        self.loaded = (source, how)
        return self.served

    def arriving(self, source: str, how: HowToLoad, clock: Clock, asks: object = None) -> Steps[Served]:
        return self.load(source, **how.arguments())
        yield

    def companion(self, make: Callable[[], T]) -> T:
        return self.companions.setdefault(make, make())  # type: ignore[return-value]

    def keep_alive(self, served: Served, seconds: float | None) -> None:
        self.kept.append(seconds)

    def live(self) -> LiveView:
        return LiveView((), (), (), (), len(self.submitted), 0, 0, 0, 0)

    def models(self) -> tuple[object, ...]:
        return ()

    def status(self, source: str, **how: object) -> None:
        """Nothing is known of it."""

    def submit(self, served: Served, prompt: Sequence[int] | Prompt, sampling: Sampling, **how: object) -> Generation:
        self.before()
        spans = prompt if isinstance(prompt, Prompt) else Prompt.of_tokens(prompt)
        self.submitted.append({"prompt": tuple(spans.ids), "spans": spans, "sampling": sampling, **how})
        timeout = how.get("timeout")
        asked = RequestSpec(
            model=served,
            prompt=spans,
            sampling=sampling,
            seed=0,
            stop_ids=frozenset(sampling.stop_ids) | served.stop_ids,
            max_context=self.max_context,
            deadline=None if timeout is None else time.monotonic() + float(timeout),  # type: ignore[arg-type]
        )
        request = Request(asked, StreamDecoder(tokenizer()))
        request.progress.reused = len(spans) // 2
        self.requests.append(request)
        generation = Generation(request)
        if not self.silent:
            self._say(request, self.answers.pop(0))
        return generation

    def _say(self, request: Request, answer: str) -> None:
        ids = tokenizer().encode_scaffold(answer)
        end = None
        for start in range(0, len(ids), self.at_once):
            some = ids[start : start + self.at_once]
            asked = request.asked.sampling
            details = [TokenLogprobs(token, -0.5, _top(token, asked.scored)) for token in some]
            end = accept(request, some, details if asked.measured else ())
            if end is not None:
                break
        reason, stop = (FinishReason.LENGTH, None) if end is None else (end.reason, end.stop)
        request.mailbox.put(request.completion(reason, stop, time.monotonic()), last=True)


def _no_files() -> ReadsTensor:
    raise AssertionError("nothing is encoded here")


def _top(token: int, scored: Sequence[int]) -> tuple[tuple[int, float], ...]:
    """The token is as likely as it says, and each of the others that are asked for is much less."""
    return tuple((other, -0.5 if other == token else -4.0) for other in scored or (token,))
