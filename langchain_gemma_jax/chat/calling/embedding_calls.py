"""Vectors of texts: a model that is loaded, what is written before each text, and how much of a vector is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from langchain_gemma_jax.chat.calling.served_model import load
from langchain_gemma_jax.chat.calling.starting import prepared
from langchain_gemma_jax.engine.base.checks import no_embedder
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import ContextLengthError, InputError
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.stopping import current, looking

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.residency.served import Served

_NAMES = {"query": ("query", "Retrieval-query"), "document": ("document", "passage", "Retrieval-document")}
"""Names that models give to the prompts before questions and documents, the usual name first."""


@dataclass(frozen=True, kw_only=True)
class AskedVectors:
    """A request for vectors: the model, the kind of the texts, and the vectors' size."""

    model: str
    how: HowToLoad
    what: str | None = None  # "query", "document", or None: texts as they are
    prompt: str | None = None  # None: the model's own
    dimensions: int | None = None
    truncate: bool = False
    keep_alive: float | str | None = None
    max_context: int | None = None  # of each text; None: what the model allows


@dataclass(frozen=True)
class FoundVectors:
    """Vectors, and how many tokens were read for them."""

    vectors: list[list[float]]
    tokens: int
    cut: int = 0  # texts that were too long


def vectors_of(texts: Sequence[str], asked: AskedVectors, clock: Clock) -> FoundVectors:
    """Return the vectors of texts. It may take a while, and ends with the work of this thread: see ``stopping``.

    Raises:
        InputError: they are no texts, or the vectors have fewer numbers. ContextLengthError: one is too long.
        UnsupportedModelError: the model makes no vectors. Others as ``engine().load`` has them.
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        found = "a string" if isinstance(texts, str) else "something else among them"
        raise InputError(f"texts: expected a list of strings, found {found}.")
    import numpy as np

    from langchain_gemma_jax.engine.api.process import engine

    served = load(asked.model, asked.how, asked.keep_alive, clock)
    width = served.model.architecture.embedding_width
    if width is None:
        raise no_embedder(served.name)
    size = width if asked.dimensions is None else asked.dimensions
    if size > width:
        raise InputError(f"dimensions: {served.name} makes vectors of {width} numbers; found {size}.")
    encoded = [_ids(served, text, number, asked) for number, text in enumerate(looking(texts, 1))]
    ids = [each for each, _ in encoded]
    prepared()
    vectors = engine().embed(served, ids, clock, current())[:, :size]
    embedding = served.model.architecture.embedding
    if size < width and embedding is not None and embedding.normed:
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    cut = sum(was_cut for _, was_cut in encoded)
    return FoundVectors(cast("list[list[float]]", vectors.tolist()), sum(map(len, ids)), cut)


def _ids(served: Served, text: str, number: int, asked: AskedVectors) -> tuple[list[int], bool]:
    """Return the ids that the model reads for a text, and whether it was cut.

    Raises:
        ContextLengthError: it is too long.
    """
    before, after = served.model.tokenizer.around
    ids = served.model.tokenizer.encode_text(_prompt(served, asked) + text)
    most = min(asked.max_context or served.max_context, served.max_context)
    room = max(0, most - len(before) - len(after))
    too_long = len(ids) > room
    if too_long:
        if not asked.truncate:
            error = ContextLengthError(len(ids) + len(before) + len(after), most, "have it cut: truncate=True")
            error.add_note(f"It is text {number} of those that were given.")
            raise error
        del ids[room:]
    return [*before, *ids, *after], too_long


def _prompt(served: Served, asked: AskedVectors) -> str:
    if asked.prompt is not None or asked.what is None:
        return asked.prompt or ""
    embedding = served.model.architecture.embedding
    known = {} if embedding is None else dict(embedding.prompts)
    return next((known[name] for name in _NAMES[asked.what] if name in known), "")
