"""Requests from a caller's prompt and options: checked, and held to a grammar if one is asked for."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from langchain_gemma_jax.engine.api.adapters import check_adapter
from langchain_gemma_jax.engine.base.checks import check_ids, check_place, checked_prompt, checked_sampling, no_writer
from langchain_gemma_jax.engine.base.guards import Asking
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.prompt import PlacedSpan, Prompt
from langchain_gemma_jax.engine.requests.request import Request, RequestSpec
from langchain_gemma_jax.engine.residency.known_models import KnownModel
from langchain_gemma_jax.errors import ClosedError, InputError, UnsupportedModelError
from langchain_gemma_jax.grammar.nodes import Grammar
from langchain_gemma_jax.models.tokenizer import StreamDecoder
from langchain_gemma_jax.reentry import Inside


def _check_media(known: KnownModel, prompt: Prompt) -> None:
    """See that a model can take what stands in a prompt beside text.

    Raises:
        UnsupportedModelError: it takes none. InputError: it was prepared for another model.
    """
    encoders, name = known.served.model.encoders, known.served.name
    if not prompt.media:
        return
    if encoders is None:
        raise UnsupportedModelError(f"{name!r} reads text alone: it has no encoder of pictures or sounds.")
    if not known.shape.architecture.encoders:
        raise UnsupportedModelError(
            f"{name!r} is divided among the devices of several hosts, where its encoders do not run. Load it on the "
            "devices of one host to show it pictures."
        )
    if prompt.media[-1].end == len(prompt) and not prompt.media[-1].span.words:
        raise InputError(
            "expected tokens behind the last picture or sound of a prompt, those of its media.place() at least, found "
            "none. The answer follows a token, which is read by itself."
        )
    for placed in prompt.media:
        found = encoders.encoder_of(placed.span.inputs or {})
        if found is None or placed.span.soft > encoders.encoders[found[0]].soft_tokens(found[1]):
            raise InputError(
                f"expected a medium that was prepared for {name!r}, as its media.place() does it, found another one at "
                f"place {placed.start} of the prompt."
            )
        _check_words(name, encoders.encoders[found[0]].most_words, placed)


def _check_words(name: str, most: int, placed: PlacedSpan) -> None:
    """See that a medium has as many words with it as it is read with, and stands where it is read with them."""
    words = placed.span.words
    if not most:
        if words:
            raise InputError(
                f"expected no text in the span of a medium, found {words} tokens: {name!r} reads it apart."
            )
        return
    if not 1 <= words <= most:
        raise InputError(
            f"expected from 1 to {most} tokens of text that {name!r} reads together with a picture, found {words}. "
            "It reads them in both directions, so all at once."
        )
    if placed.start:
        raise InputError(
            f"expected a picture at the beginning of the prompt, found one at place {placed.start}. {name!r} reads a "
            "picture and its text in both directions, and nothing before them."
        )


class RequestMaker:
    """Makes requests, in callers' own threads."""

    def __init__(self) -> None:
        self._grammars = Inside("it compiled a grammar")

    def make(
        self,
        known: KnownModel,
        prompt: Sequence[int] | Prompt,
        sampling: Sampling | None,
        *,
        scope: str,
        system: int,
        asked_by: Asking,
        deadline: float | None,
        ahead: bool = False,
    ) -> Request:
        """Make a request of what ``Engine.submit`` was given."""
        served = known.served
        if known.files is None and served.model.closed:
            raise ClosedError(f"The model {served.name!r} was closed. Unload it, and load it again.")
        if served.model.architecture.embeds:
            raise no_writer(served.name)
        vocabulary = served.model.architecture.vocab_size
        sampling = checked_sampling(sampling, vocabulary)
        if isinstance(prompt, Prompt):
            check_ids(prompt.ids, vocabulary, served.max_context)
            _check_media(known, prompt)
            check_adapter(served.model, prompt.adapter)
        else:
            prompt = Prompt.of_tokens(checked_prompt(prompt, vocabulary, served.max_context))
        check_place(scope, system, len(prompt))
        stops = frozenset(sampling.stop_ids) | (frozenset() if sampling.ignore_eos else served.stop_ids)
        with self._grammars.here():
            constraint, banned = known.grammars.begin(sampling, stops)
        asked = RequestSpec(
            model=served,
            prompt=prompt,
            sampling=sampling,
            seed=secrets.randbits(64) if sampling.seed is None else sampling.seed,
            stop_ids=stops,
            max_context=served.max_context,
            scope=scope,
            system=system,
            app=asked_by.app,
            guards=asked_by.guards,
            warn_to=asked_by.warn_to,
            deadline=deadline,
            banned=banned,
            ahead=ahead,
        )
        drafter = known.drafts.drafter(scope) if sampling.drafts else None
        return Request(asked, StreamDecoder(served.model.tokenizer), constraint, drafter)

    def prepare(self, known: KnownModel, grammar: Grammar | None) -> None:
        """Make now what the first request with a grammar needs."""
        with self._grammars.here():
            known.grammars.prepare(grammar)
