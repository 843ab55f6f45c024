"""The device programs of one model: the engine compiles no others.

    read     a chunk of one conversation                        one for each (chunk, capacity)
    verify   drafted tokens of one conversation                 one for each capacity
    advance  a token of each of several conversations           one for each (rows, capacity)
    pick     the tokens that follow what those have read        one for each number of rows
    step     advance and pick, for a conversation alone         one for each capacity
    loop     several steps without the host                     instead of the last three, where that is faster
    empty, resize, snapshot, restore                            a conversation's memory as a whole
    embed    whole texts, by a model that makes vectors of them one for each (rows, tokens)
    encode_begin, encode_layer, encode_end
             the parts of an encoder of pictures or sounds      one of each for each (encoder, size of its input)
    read_medium
             the soft tokens of one picture or sound            one for each (encoder, chunk, capacity)

Everything that can differ from call to call is traced; the shapes come from ``ladders.Ladders`` alone, so the number of
programs has a bound. Picking takes long to compile and is the same for every capacity, so it is a program of its own.
Only for a conversation alone it is part of ``step``, since two dispatches a token would cost more than they save. The
sequences of all programs but ``pick``, ``resize`` and ``snapshot`` are donated: the caller may use only what is
returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.engine.base.program_key import ENCODING, ProgramKey
from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.engine.device.knobs import Knobs
from langchain_gemma_jax.engine.device.sampling import Picked, pick
from langchain_gemma_jax.engine.device.sequence_kv import SequenceKV
from langchain_gemma_jax.kernels.fused_ops import best as best_of
from langchain_gemma_jax.kernels.products import kernels_run
from langchain_gemma_jax.models.configuration.model_config import CacheLayout
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import BetweenForm, Recipe
from langchain_gemma_jax.models.seams.score_share import EVERY_SCORE, ScoreShare

Jitted: TypeAlias = jax.stages.Wrapped

MAX_STOPS = 16  # stop ids that a loop on the device checks; the host checks all of them
NO_TOKEN = -1  # returned instead of a token if the model's scores have NaN


@dataclass(frozen=True)
class Shape:
    """The static facts that a model's programs are traced with."""

    architecture: Architecture
    recipe: Recipe
    valid_vocab: int  # ids from here on are no tokens, and are never picked
    max_context: int
    loop_steps: int = 8

    @property
    def layout(self) -> CacheLayout:
        """The cache of each layer for a conversation."""
        return self.architecture.cache_layout

    @property
    def layout_of_a_device(self) -> CacheLayout:
        """The part of ``layout`` on each device, for a model that is divided among several."""
        return self.architecture.cache_of_a_device


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RowKnobs:
    """A row's inputs for sampling: its own parameters, and the tokens that are legal now."""

    knobs: Knobs
    allowed: jax.Array  # [word] uint32: bit i of word w is token 32 w + i


class Programs:
    """The jitted programs of one model and placement."""

    def __init__(self, shape: Shape, placement: Placement) -> None:
        self.shape, self.placement = shape, placement
        self.read = self._jit(_read, donate="sequence")
        self.pick = self._jit(_pick_rows)
        self.step = self._jit(_step, donate="sequences")
        self.advance = self._jit(_advance, donate="sequences")
        self.loop = self._jit(_loop, donate="sequences")
        self.verify = self._jit(_verify, donate="sequence")
        self.embed = self._jit(_embed)
        self.snapshot = jax.jit(self._kept(partial(sequence_kv.snapshot, shape.layout)))
        self.restore = jax.jit(self._kept(partial(sequence_kv.restore, shape.layout)), donate_argnames="sequence")

    def of(self, key: ProgramKey) -> Jitted:
        """Return the program of a key from the ladders."""
        kind = str(key[0])
        if kind == "empty":
            return self.empty(int(key[1]))
        if kind == "resize":
            return self.resize(int(key[2]))
        if kind == "read_medium":
            return self.read_medium(int(key[1]))
        if kind in ENCODING:
            return self.encoding(kind, int(key[1]))
        if kind == "step":
            rows = int(key[1])
            kind = "loop" if self.shape.loop_steps > 1 else "step" if rows == 1 else "advance"
        program: Jitted = getattr(self, kind)
        return program

    def empty(self, capacity: int) -> Jitted:
        """Return the program that makes a sequence without tokens."""
        layout, context = self.shape.layout, self.shape.max_context
        program = partial(sequence_kv.empty, layout, capacity, context, self.shape.recipe.kv_dtype)
        # A program without array arguments needs an explicit sharding for its result.
        return jax.jit(program, out_shardings=sequence_kv.shardings(self.placement, jax.eval_shape(program)))

    def resize(self, capacity: int) -> Jitted:
        """Return the program that copies a sequence into one of this capacity."""
        return jax.jit(self._kept(partial(sequence_kv.resize, self.shape.layout, capacity=capacity)))

    def read_medium(self, encoder: int) -> Jitted:
        """Return the program that reads an encoder's soft tokens of one medium."""
        return self._jit(partial(_read_medium, encoder=encoder), donate="sequence", name="read_medium")

    def encoding(self, part: str, encoder: int) -> Jitted:
        """Return the program of one part of an encoder."""
        kind = self.shape.architecture.encoders[encoder]
        bodies = dict(zip(ENCODING, (kind.begin, kind.layer, kind.end), strict=True))

        def program(arrays: Any, given: Any) -> Any:
            return bodies[part](arrays, given)

        program.__name__ = part
        return jax.jit(self._kept(program))

    def _jit(self, body: Callable[..., Any], donate: str | None = None, name: str | None = None) -> Jitted:
        program = partial(body, self.shape)
        program.__name__ = name or body.__name__.lstrip("_")  # type: ignore[attr-defined]  # the name in logs and events
        return jax.jit(self._kept(program), donate_argnames=donate)

    def _kept(self, program: Callable[..., Any]) -> Callable[..., Any]:
        """Fix the sharding of a program's results to what other programs take. XLA would choose one of its own."""
        if self.placement.one_device:
            return program

        @wraps(program)
        def kept(*args: Any, **kwargs: Any) -> Any:
            found = program(*args, **kwargs)
            return jax.lax.with_sharding_constraint(found, sequence_kv.shardings(self.placement, found))

        return kept


def _read(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [1, token] int32, padded
    start: jax.Array,  # [1] int32
    count: jax.Array,  # [1] int32
    sequence: SequenceKV,
) -> tuple[jax.Array, jax.Array, SequenceKV]:
    """Read a chunk: the hidden state after its last real token ``[1, width]``, its end, the sequence."""
    hidden, (sequence,) = _forward(shape, params, tokens, start, count, (sequence,), keep=count - 1)
    return hidden[:, 0], start + count, sequence


def _read_medium(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [1, token] int32: the placeholders, padded
    vectors: jax.Array,  # [1, token, width] float32: the soft tokens that are read in their place
    start: jax.Array,  # [1] int32
    count: jax.Array,  # [1] int32
    sequence: SequenceKV,
    *,
    encoder: int,
) -> tuple[jax.Array, jax.Array, SequenceKV]:
    """Read one medium: the hidden state after its last token ``[1, width]``, its end, the sequence."""
    hidden, cache = shape.architecture.read_medium(
        params, shape.recipe, encoder, vectors, start, count, sequence.layers, count - 1
    )
    at = jnp.arange(sequence.ids.shape[0]) - start[0]  # padding may reach beyond the end, and is not written
    new = jnp.take(tokens[0], jnp.clip(at, 0, tokens.shape[1] - 1))
    ids = jnp.where((at >= 0) & (at < count[0]), new, sequence.ids)
    return hidden[:, 0], start + count, SequenceKV(cache, ids)


def _embed(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [row, token] int32, padded
    count: jax.Array,  # [row] int32
) -> jax.Array:
    """Read whole texts: the vector of each, float32 ``[row, width]``."""
    return shape.architecture.embed(params, shape.recipe, tokens, count)


def _verify(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [1, token] int32: the newest token and the drafted ones after it, padded
    start: jax.Array,  # [1] int32
    count: jax.Array,  # [1] int32
    sequence: SequenceKV,
) -> tuple[jax.Array, jax.Array, SequenceKV]:
    """Read a chunk: the hidden state after each of its tokens ``[token, width]``, the end after each, the sequence."""
    hidden, (sequence,) = _forward(shape, params, tokens, start, count, (sequence,))
    return hidden[0], start + 1 + jnp.arange(tokens.shape[1]), sequence


def _advance(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [row] int32: the newest tokens, not read yet
    ends: jax.Array,  # [row] int32: the number of tokens in each sequence
    sequences: tuple[SequenceKV, ...],
) -> tuple[jax.Array, jax.Array, tuple[SequenceKV, ...]]:
    """Read one token a row: the hidden states ``[row, width]``, the new ends, the sequences."""
    hidden, sequences = _forward(shape, params, tokens[:, None], ends, jnp.ones_like(ends), sequences)
    return hidden[:, 0], ends + 1, sequences


def _pick_rows(
    shape: Shape,
    params: Any,
    hidden: jax.Array,  # [row, width]
    ends: jax.Array,  # [row] int32: the positions of the tokens to pick
    ids: tuple[jax.Array, ...],  # a row: [position] int32
    rows: tuple[RowKnobs, ...],
) -> Picked:
    """Pick the tokens that follow these hidden states."""
    stacked: RowKnobs = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
    valid = shape.valid_vocab

    def work(scores: jax.Array, share: ScoreShare, rows: RowKnobs, ids: jax.Array, ends: jax.Array) -> Picked:
        by_kernel = share is EVERY_SCORE and shape.recipe.between is BetweenForm.KERNEL and kernels_run()
        best = best_of(scores, valid) if by_kernel else None
        picked = pick(scores, rows.knobs, ids, ends, rows.allowed, valid_vocab=valid, best=best, share=share)
        broken = jnp.isnan(share.max(scores, axis=-1) if best is None else best[0])
        return Picked(jnp.where(broken, NO_TOKEN, picked.tokens), picked.logprobs, picked.top_ids, picked.top_logprobs)

    return shape.architecture.with_scores(params, shape.recipe, hidden, work, stacked, jnp.stack(ids), ends)


def _step(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [row] int32: the newest tokens, not read yet
    ends: jax.Array,  # [row] int32: the number of tokens in each sequence
    sequences: tuple[SequenceKV, ...],
    rows: tuple[RowKnobs, ...],
) -> tuple[Picked, jax.Array, tuple[SequenceKV, ...]]:
    """Read one token a row and pick the next: the picked tokens, the new ends, the sequences."""
    hidden, ends, sequences = _advance(shape, params, tokens, ends, sequences)
    ids = tuple(sequence.ids for sequence in sequences)
    return _pick_rows(shape, params, hidden, ends, ids, rows), ends, sequences


def _loop(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [row] int32
    ends: jax.Array,  # [row] int32
    limits: jax.Array,  # [row] int32: the number of tokens that a row may still get
    stops: jax.Array,  # [row, stop] int32: ids that end a row; -1: none
    sequences: tuple[SequenceKV, ...],
    rows: tuple[RowKnobs, ...],
) -> tuple[Picked, jax.Array, tuple[SequenceKV, ...]]:
    """Run up to ``loop_steps`` steps: the picked tokens ``[step, row]``, their number in each row, the sequences."""
    steps, count = shape.loop_steps, len(sequences)
    blank = jax.eval_shape(partial(_step, shape), params, tokens, ends, sequences, rows)[0]
    out = jax.tree.map(lambda leaf: jnp.zeros((steps, *leaf.shape), leaf.dtype), blank)

    def go_on(state: _LoopState) -> jax.Array:
        return (state.step < steps) & jnp.any(state.got < state.limits)

    def once(state: _LoopState) -> _LoopState:
        picked, _, kept = _step(shape, params, state.tokens, state.ends, state.sequences, rows)
        alive = state.got < state.limits
        # A row that is done reads its last token again in each step, at the same place.
        more = alive.astype(jnp.int32)
        got = state.got + more
        ended = jnp.any(picked.tokens[:, None] == stops, axis=1)
        return _LoopState(
            step=state.step + 1,
            tokens=jnp.where(alive, picked.tokens, state.tokens),
            ends=state.ends + more,
            got=got,
            limits=jnp.where(alive & ended, got, state.limits),
            out=jax.tree.map(lambda o, new: o.at[state.step].set(new), state.out, picked),
            sequences=kept,
        )

    first = _LoopState(jnp.int32(0), tokens, ends, jnp.zeros(count, jnp.int32), limits, out, sequences)
    last = jax.lax.while_loop(go_on, once, first)
    return last.out, last.got, last.sequences


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _LoopState:
    step: jax.Array  # int32
    tokens: jax.Array  # [row] int32
    ends: jax.Array  # [row] int32
    got: jax.Array  # [row] int32: tokens picked in this loop
    limits: jax.Array  # [row] int32
    out: Picked  # [step, row, ...]
    sequences: tuple[SequenceKV, ...]


def _forward(
    shape: Shape,
    params: Any,
    tokens: jax.Array,
    start: jax.Array,
    count: jax.Array,
    sequences: tuple[SequenceKV, ...],
    keep: jax.Array | None = None,
) -> tuple[jax.Array, tuple[SequenceKV, ...]]:
    caches = tuple(sequence.layers for sequence in sequences)
    hidden, caches = shape.architecture.forward(params, shape.recipe, tokens, start, count, caches, keep)
    return hidden, tuple(
        SequenceKV(cache, jax.lax.dynamic_update_slice(sequence.ids, tokens[row], (start[row],)))
        for row, (cache, sequence) in enumerate(zip(caches, sequences, strict=True))
    )
