"""The device programs of one model: the engine compiles no others.

    read     a chunk of one conversation, or its newest token and drafted ones  one for each size of a chunk
    advance  a token of each of several conversations                          one
    pick     the tokens that follow what those have read                        one
    step     advance and pick, for a conversation alone                         one
    loop     several steps without the host                     instead of the last three, where that is faster
    empty    the pool of pages that all conversations share                     one
    copy_pages, take_pages, put_pages
             pages as a whole, where the host cannot reach the memory of the pool
    embed    whole texts, by a model that makes vectors of them one for each (rows, tokens)
    encode_begin, encode_layer, encode_end
             the parts of an encoder of pictures or sounds      one of each for each (encoder, size of its input)
    draft    the guesses of a drafter beside the model                          one for each number of them
    read_medium
             the soft tokens of one picture or sound            one for each (encoder, chunk)
    adapted_read, adapted_step, adapted_read_medium
             the same where a row may have an adapter           only for a model that was given one
    put_adapter
             one adapter into its slot                          likewise

Everything that can differ from call to call is traced, where a conversation's pages lie and how long it is included.
Only where XLA attends, which goes through whole tables, there are several widths of tables, and a program for each.
The shapes come from ``ladders.Ladders`` alone, so the number of programs has a bound. Picking takes long to compile, so
it is a program of its own. Only for a conversation alone it is part of ``step``, since two dispatches a token would
cost more than they save. The pool is donated by all programs that return it: the caller may use only what is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.engine.base.pages import Paging
from langchain_gemma_jax.engine.base.program_key import ENCODING, ProgramKey, without_adapters
from langchain_gemma_jax.engine.device import page_pool
from langchain_gemma_jax.engine.device.knobs import unpacked
from langchain_gemma_jax.engine.device.page_pool import KvPool, Tables, note_ids, window_of
from langchain_gemma_jax.engine.device.sampling import Picked, best_is_enough, pick, the_best
from langchain_gemma_jax.kernels.fused_ops import best as best_of
from langchain_gemma_jax.kernels.products import kernels_run
from langchain_gemma_jax.models.configuration.model_config import CacheLayout
from langchain_gemma_jax.models.gemma.drafter import ChainStart, DraftTarget, GemmaDrafter
from langchain_gemma_jax.models.seams.adapters import AdaptedParams, Stacks, unfolded, with_slot
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from langchain_gemma_jax.models.seams.linear import used_rows
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import BetweenForm, Recipe
from langchain_gemma_jax.models.seams.score_share import EVERY_SCORE, ScoreShare

Jitted: TypeAlias = jax.stages.Wrapped

MAX_STOPS = 16  # stop ids that a loop on the device checks; the host checks all of them
NO_TOKEN = -1  # returned instead of a token if the model's scores have NaN
FEW_TOKENS = 16  # a chunk of no more gives what it read of each token
PAGES_AT_ONCE = 8  # that a program copies, takes or puts


@dataclass(frozen=True)
class Shape:
    """The static facts that a model's programs are traced with."""

    architecture: Architecture
    recipe: Recipe
    valid_vocab: int  # ids from here on are no tokens, and are never picked
    max_context: int
    pages: PageCounts
    local_entries: int = 1  # of the local layers' tables
    loop_steps: int = 8
    picks: int = 8  # rows that tokens are picked for at once
    drafter: GemmaDrafter | None = None

    @property
    def paging(self) -> Paging:
        """How conversations are cut into pages."""
        return Paging(self.pages.slots, window_of(self.layout))

    @property
    def layout(self) -> CacheLayout:
        """The cache of each layer for a conversation."""
        return self.recipe.kept(self.architecture.cache_layout)

    @property
    def layout_of_a_device(self) -> CacheLayout:
        """The part of ``layout`` on each device, for a model that is divided among several."""
        return self.recipe.kept(self.architecture.cache_of_a_device)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RowSettings:
    """The inputs of rows for sampling: their own parameters, and the tokens that are legal now."""

    knobs: jax.Array  # [row, number] uint32: see ``knobs.packed``
    allowed: tuple[jax.Array, ...]  # of each row [word] uint32: bit i of word w is token 32 w + i


class Programs:
    """The jitted programs of one model and placement."""

    def __init__(self, shape: Shape, placement: Placement) -> None:
        self.shape, self.placement = shape, placement
        self.read = self._jit(_read, donate="pool")
        self.pick = self._jit(_pick_rows)
        self.step = self._jit(_step, donate="pool")
        self.advance = self._jit(_advance, donate="pool")
        self.loop = self._jit(_loop, donate="pool")
        self.embed = self._jit(_embed)
        self.copy_pages = self._jit(_copy_pages, donate="pool")
        self.take_pages = self._jit(_take_pages)
        self.put_pages = self._jit(_put_pages, donate="pool")
        self.put_adapter = self._jit(_put_adapter, donate="stacks")

    def of(self, key: ProgramKey) -> Jitted:
        """Return the program of a key from the ladders."""
        key, _ = without_adapters(key)  # they are in what it is given
        kind = str(key[0])
        if kind == "empty":
            return self.empty()
        if kind == "read_medium":
            return self.read_medium(int(key[1]))
        if kind == "draft":
            return self.draft(int(key[1]))
        if kind in ENCODING:
            return self.encoding(kind, int(key[1]))
        if kind == "step":
            rows = int(key[1])
            kind = "loop" if self.shape.loop_steps > 1 else "step" if rows == 1 else "advance"
        program: Jitted = getattr(self, kind)
        return program

    def empty(self) -> Jitted:
        """Return the program that makes the pool."""
        program = partial(page_pool.empty, self.shape.layout, self.shape.pages, self.shape.recipe)
        # A program without array arguments needs an explicit sharding for its result.
        return jax.jit(program, out_shardings=page_pool.shardings(self.placement, jax.eval_shape(program)))

    def read_medium(self, encoder: int) -> Jitted:
        """Return the program that reads an encoder's soft tokens of one medium."""
        return self._jit(partial(_read_medium, encoder=encoder), donate="pool", name="read_medium")

    def draft(self, count: int) -> Jitted:
        """Return the program in which the model's drafter makes this number of guesses."""
        return self._jit(partial(_draft, count=count), name="draft")

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
            return jax.lax.with_sharding_constraint(found, page_pool.shardings(self.placement, found))

        return kept


def _read(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [1, token] int32, padded
    start: jax.Array,  # [1] int32
    count: jax.Array,  # [1] int32
    first: jax.Array,  # int32: the first token whose hidden state is wanted; of a long chunk, the last real one
    tables: Tables,  # [1, entry]
    pool: KvPool,
) -> tuple[jax.Array, jax.Array, KvPool]:
    """Read a chunk: the hidden states after some tokens ``[picks, width]``, the ends there, and the pool."""
    few = tokens.shape[1] <= FEW_TOKENS
    hidden, pool = _forward(shape, params, tokens, start, count, tables, pool, keep=None if few else count - 1)
    padded = jnp.concatenate([hidden[0], jnp.zeros((shape.picks, hidden.shape[2]), hidden.dtype)])
    wanted = jax.lax.dynamic_slice_in_dim(padded, first if few else jnp.int32(0), shape.picks)
    return wanted, start + 1 + first + jnp.arange(shape.picks), pool


def _read_medium(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [1, token] int32: the placeholders and words, padded
    vectors: jax.Array,  # [1, token, width] float32: the soft tokens that are read in their place
    start: jax.Array,  # [1] int32
    count: jax.Array,  # [1] int32
    tables: Tables,  # [1, entry]
    pool: KvPool,
    *,
    encoder: int,
) -> tuple[jax.Array, jax.Array, KvPool]:
    """Read one medium: the hidden state after its last token, its end, as ``_read`` returns them, and the pool."""
    hidden, cache = shape.architecture.read_medium(
        unfolded(params), shape.recipe, encoder, tokens, vectors, start, count, tables.over(pool), count - 1
    )
    pool = note_ids(KvPool(cache.layers, pool.ids), tables.whole, tokens, start, count)
    wanted = jnp.pad(hidden[0], ((0, shape.picks - 1), (0, 0)))
    return wanted, start + count + jnp.arange(shape.picks), pool


def _draft(
    shape: Shape,
    params: Any,
    drafter: Any,
    token: jax.Array,  # [1] int32: the newest token, not read yet
    held: jax.Array,  # [1] int32: the number of tokens before it, all of them read
    hidden: jax.Array,  # [token, width] float32: what the model gave for some tokens ...
    last: jax.Array,  # int32: ... and the one of them that was read last
    tables: Tables,  # [1, entry]
    pool: KvPool,
    *,
    count: int,
) -> jax.Array:
    """Guess the next tokens: int32 ``[count]``. Nothing is written."""
    config = shape.architecture.gemma
    if shape.drafter is None or config is None:
        raise TypeError("the model has no drafter")
    target = DraftTarget(params, config, shape.recipe, shape.valid_vocab)
    start = ChainStart(token, held, jax.lax.dynamic_slice_in_dim(hidden, last, 1))
    return shape.drafter.chain(drafter, target, start, tables.over(pool), count)


def _embed(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [row, token] int32, padded
    count: jax.Array,  # [row] int32
) -> jax.Array:
    """Read whole texts: the vector of each, float32 ``[row, width]``."""
    return shape.architecture.embed(params, shape.recipe, tokens, count)


def _advance(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [row] int32: the newest tokens, not read yet
    ends: jax.Array,  # [row] int32: the number of tokens in each conversation
    alive: jax.Array,  # [row] int32: 1, or 0 for rows that are unused or done
    tables: Tables,  # [row, entry]
    pool: KvPool,
) -> tuple[jax.Array, jax.Array, KvPool]:
    """Read one token a row: the hidden states ``[row, width]``, the new ends, the pool."""
    hidden, pool = _forward(shape, params, tokens[:, None], ends, alive, tables, pool)
    return hidden[:, 0], ends + alive, pool


def _pick_rows(
    shape: Shape,
    params: Any,
    hidden: jax.Array,  # [row, width]
    ends: jax.Array,  # [row] int32: the positions of the tokens to pick
    real: jax.Array,  # int32: the number of rows before the unused ones
    whole: jax.Array,  # [row, entry] int32: the pages of the rows' ids
    ids: jax.Array,  # [page, slot] int32
    rows: RowSettings,
) -> Picked:
    """Pick the tokens that follow these hidden states."""
    valid = shape.valid_vocab

    def work(scores: jax.Array, share: ScoreShare, real: jax.Array, rows: RowSettings, *given: jax.Array) -> Picked:
        whole, ids, ends = given
        by_kernel = share is EVERY_SCORE and shape.recipe.between is BetweenForm.KERNEL and kernels_run()
        best = best_of(scores, valid) if by_kernel else None
        knobs, allowed = unpacked(rows.knobs), jnp.stack(rows.allowed)

        def drawn() -> Picked:
            history = ids[whole].reshape(whole.shape[0], -1)
            return pick(scores, knobs, history, ends, allowed, valid_vocab=valid, best=best, share=share)

        if best is None:
            picked = drawn()
        else:  # greedy rows copy and scan no scores
            enough = best_is_enough(knobs, best, allowed, real)
            picked = jax.lax.cond(enough, lambda: the_best(best), drawn)
        broken = jnp.isnan(share.max(scores, axis=-1) if best is None else best[0])
        return Picked(jnp.where(broken, NO_TOKEN, picked.tokens), picked.logprobs, picked.top_ids, picked.top_logprobs)

    return shape.architecture.with_scores(params, shape.recipe, hidden, real, work, real, rows, whole, ids, ends)


def _step(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [row] int32: the newest tokens, not read yet
    ends: jax.Array,  # [row] int32: the number of tokens in each conversation
    alive: jax.Array,  # [row] int32: 1, or 0 for rows that are unused or done
    tables: Tables,  # [row, entry]
    pool: KvPool,
    rows: RowSettings,
) -> tuple[Picked, jax.Array, KvPool]:
    """Read one token a row and pick the next: the picked tokens, the new ends, the pool."""
    hidden, ends, pool = _advance(shape, params, tokens, ends, alive, tables, pool)
    plain = params.params if isinstance(params, AdaptedParams) else params
    picked = _pick_rows(shape, plain, hidden, ends, used_rows(alive), tables.whole, pool.ids, rows)
    return picked, ends, pool


def _loop(
    shape: Shape,
    params: Any,
    tokens: jax.Array,  # [row] int32
    ends: jax.Array,  # [row] int32
    limits: jax.Array,  # [row] int32: the number of tokens that a row may still get
    stops: jax.Array,  # [row, stop] int32: ids that end a row; -1: none
    tables: Tables,  # [row, entry]
    pool: KvPool,
    rows: RowSettings,
) -> tuple[Picked, jax.Array, KvPool]:
    """Run up to ``loop_steps`` steps: the picked tokens ``[step, row]``, their number in each row, the pool."""
    steps = shape.loop_steps
    blank = jax.eval_shape(partial(_step, shape), params, tokens, ends, limits, tables, pool, rows)[0]
    out = jax.tree.map(lambda leaf: jnp.zeros((steps, *leaf.shape), leaf.dtype), blank)

    def go_on(state: _LoopState) -> jax.Array:
        return (state.step < steps) & jnp.any(state.got < state.limits)

    def once(state: _LoopState) -> _LoopState:
        alive = state.got < state.limits
        more = alive.astype(jnp.int32)  # a row that is done reads nothing
        picked, _, kept = _step(shape, params, state.tokens, state.ends, more, tables, state.pool, rows)
        got = state.got + more
        ended = jnp.any(picked.tokens[:, None] == stops, axis=1)
        return _LoopState(
            step=state.step + 1,
            tokens=jnp.where(alive, picked.tokens, state.tokens),
            ends=state.ends + more,
            got=got,
            limits=jnp.where(alive & ended, got, state.limits),
            out=jax.tree.map(lambda o, new: o.at[state.step].set(new), state.out, picked),
            pool=kept,
        )

    first = _LoopState(jnp.int32(0), tokens, ends, jnp.zeros_like(limits), limits, out, pool)
    last = jax.lax.while_loop(go_on, once, first)
    return last.out, last.got, last.pool


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _LoopState:
    step: jax.Array  # int32
    tokens: jax.Array  # [row] int32
    ends: jax.Array  # [row] int32
    got: jax.Array  # [row] int32: tokens picked in this loop
    limits: jax.Array  # [row] int32
    out: Picked  # [step, row, ...]
    pool: KvPool


def _forward(
    shape: Shape,
    params: Any,
    tokens: jax.Array,
    start: jax.Array,
    count: jax.Array,
    tables: Tables,
    pool: KvPool,
    keep: jax.Array | None = None,
) -> tuple[jax.Array, KvPool]:
    whole = unfolded(params)
    hidden, cache = shape.architecture.forward(whole, shape.recipe, tokens, start, count, tables.over(pool), keep)
    return hidden, note_ids(KvPool(cache.layers, pool.ids), tables.whole, tokens, start, count)


def _copy_pages(shape: Shape, source: Tables, target: Tables, pool: KvPool) -> KvPool:
    return page_pool.copy_pages(pool, shape.layout, source, target)


def _take_pages(shape: Shape, tables: Tables, pool: KvPool) -> KvPool:
    return page_pool.take_pages(pool, shape.layout, tables)


def _put_pages(shape: Shape, tables: Tables, contents: KvPool, pool: KvPool) -> KvPool:
    return page_pool.put_pages(pool, shape.layout, tables, contents)


def _put_adapter(shape: Shape, stacks: Stacks, slot: jax.Array, one: Stacks) -> Stacks:  # noqa: ARG001  as all have it
    return with_slot(stacks, slot, one)  # type: ignore[no-any-return]
