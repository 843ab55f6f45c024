"""A tiny model that sees, and what it says without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.engine.requests.prompt import MediaSpan, Prompt, TokenSpan
from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.models.gemma.forward import SoftChunk, forward, logits
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.media_encoder import Sight, Tensor
from langchain_gemma_jax.models.seams.media_support import MediaSupport
from langchain_gemma_jax.models.vision.gemma3_pictures import SquarePictures
from langchain_gemma_jax.models.vision.model_media import ModelMedia
from langchain_gemma_jax.models.vision.projections import Pooled
from langchain_gemma_jax.models.vision.siglip import Siglip
from tests.engine.tiny import CONTEXT, TIE

SOFT, BEFORE, AFTER = 25, (10, 11), (13,)  # soft tokens: more than the window, and than a ring's slack
TEXT, ROOM = 64, 32  # what chunks are padded to in a cold run


def seeing(model: Model, sight: Sight = Sight.EVERYWHERE) -> Model:
    """Return a model of the same weights that sees, by an encoder of its own whose weights are not read yet."""
    width = model.config.width
    encoder = Siglip(
        side=20,
        patch=4,
        width=8,
        depth=2,
        heads=2,
        ffw_width=12,
        eps=1e-6,
        projection=Pooled(5),
        text_width=width,
        sight=sight,
    )
    rules = SquarePictures(20, SOFT, BEFORE, 12, AFTER)

    def open_files():
        numbers = np.random.default_rng(7)
        return nullcontext(lambda tensor: _made(tensor, numbers))

    media = ModelMedia(MediaSupport(rules), (encoder,), open_files)
    return replace(model, architecture=Gemma(model.config, (encoder,)), encoders=media)


def _made(tensor: Tensor, numbers: np.random.Generator) -> np.ndarray:
    scale = 0.4 if tensor.is_matrix else 0.2
    return (numbers.normal(0, scale, tensor.stored or tensor.shape) + (not tensor.is_matrix)).astype(np.float32)


def picture(number: int) -> Picture:
    """Return one of many pictures, all of the same size."""
    numbers = np.random.default_rng(number)
    return Picture(np.clip(numbers.normal(128, 90, (24, 30, 3)), 0, 255).astype(np.uint8))


def spans_of(model: Model, shown: Picture) -> list[TokenSpan | MediaSpan]:
    """Return what stands in a prompt for a picture."""
    placed = model.media.place(shown)
    span = MediaSpan(placed.placeholders, placed.digest, placed.inputs)
    return [TokenSpan(placed.before), span, TokenSpan(placed.after)]


@dataclass
class ColdSight:
    """The answers of a model that sees to a whole context at once, each piece of text and each picture in one go."""

    model: Model
    checked: int = 0
    _seen: dict[bytes, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config, recipe = self.model.config, self.model.recipe
        encoder = self.model.architecture.encoders[0]
        fresh = replace(self.model.encoders, loaded={})
        self._tree = fresh.read(0, "float32", self.model.placement)
        self._encode = jax.jit(
            lambda begin, layers, end, inputs: encoder.end(
                end, self._layers(encoder, layers, encoder.begin(begin, inputs))
            )
        )

        @partial(jax.jit, static_argnames="is_medium")
        def read(params, given, start, count, cache, *, is_medium):
            medium = SoftChunk(given, encoder.sight) if is_medium else None
            tokens = jnp.zeros(given.shape[:2], jnp.int32) if is_medium else given
            hidden, cache = forward(params, config, recipe, tokens, start, count, cache, medium=medium)
            return logits(params, config, recipe, hidden), cache

        self._read = read

    @staticmethod
    def _layers(encoder, layers, state):
        for arrays in layers:
            state = encoder.layer(arrays, state)
        return state

    def vectors(self, span: MediaSpan) -> np.ndarray:
        """Return a picture's soft tokens."""
        if span.digest not in self._seen:
            tree = self._tree
            put = jax.device_put(dict(span.inputs), self.model.device)
            found = self._encode(tree.begin, tree.layers, tree.end, put)
            self._seen[span.digest] = jax.device_get(found)
        return self._seen[span.digest]

    def scores(self, prompt: Prompt, answer: Sequence[int]) -> np.ndarray:
        """``[token, vocab]``: before each token of an answer."""
        spans, pieces = [*prompt.spans, TokenSpan(tuple(answer))], []
        for span in spans:
            if isinstance(span, TokenSpan) and pieces and isinstance(pieces[-1], TokenSpan):
                pieces[-1] = TokenSpan(pieces[-1].ids + span.ids)
            else:
                pieces.append(span)
        device = self.model.device
        cache = kv_cache.allocate(self.model.config.cache_layout, 1, 2 * CONTEXT, "float32", device)
        at, found = 0, []
        for span in pieces:
            is_medium, count = isinstance(span, MediaSpan), len(span.ids)
            if is_medium:
                given = np.zeros((1, ROOM, self.model.config.width), np.float32)
                given[0, :count] = self.vectors(span)[:count]
            else:
                given = np.zeros((1, CONTEXT), np.int32)
                given[0, :count] = span.ids
            given, start, many = jax.device_put((given, np.array([at], np.int32), np.array([count], np.int32)), device)
            scores, cache = self._read(self.model.params, given, start, many, cache, is_medium=is_medium)
            found.append(jax.device_get(scores)[0, :count])
            at += count
        return np.concatenate(found)[len(prompt) - 1 : len(prompt) - 1 + len(answer)]

    def check(self, prompt: Prompt, completion: Completion, what: str = "") -> None:
        """Each token of a greedy answer is the best one behind those before it."""
        with jax.transfer_guard("allow"):
            found = self.scores(prompt, completion.ids)
        valid = min(self.model.tokenizer.vocab_size, self.model.config.vocab_size)
        for index, (token, row) in enumerate(zip(completion.ids, found, strict=True)):
            best = int(np.argmax(row[:valid]))
            self.checked += 1
            assert row[token] >= row[best] - TIE, f"{what}: token {index} behind {len(prompt)} is {token}, cold {best}"
