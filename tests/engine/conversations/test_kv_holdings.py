"""The pages of conversations: none is lost, none is written by two, and what is in them is what was read.

Tokens are written as programs write them. What is in a slot follows from all tokens up to there, so that a page of
another conversation, or of an earlier time, would be noticed.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api.model_estimate import shape_of
from langchain_gemma_jax.engine.base.guards import Guards
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.pages import PageTotals
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.conversations.kv_holdings import KvHoldings
from langchain_gemma_jax.engine.device import page_door
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.page_pool import KvPool
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.engine.executables.library import Library, Tally
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.models.seams.kv_cache import LayerKV, PageCounts
from tests.engine.tiny import CONTEXT, LADDERS

CHUNK = LADDERS.longest_chunk


def holdings(model, pages=(40, 30)):
    """The pages of a model, of which so many of each kind can be taken."""
    shape = shape_of(Settings(ladders=LADDERS), model)
    shape = replace(shape, pages=PageCounts(pages[0] + 1, pages[1] + 1, shape.pages.slots))
    metrics, where = Metrics(), model.placement
    keys = LADDERS.for_context(CONTEXT).program_keys(moves_pages=True)
    device = DeviceAccess(where, metrics, Guards(lambda: Settings(guards="raise")), keys, lambda: 0)
    return KvHoldings(shape, Library(Programs(shape, where), None, Tally()), device, LADDERS, metrics)


@partial(jax.jit, static_argnames="layout")
def written(pool, layout, pages, slots, ids, values):
    """The pool with a number in all that is kept of some tokens. ``pages`` are those of each kind."""

    def put(layer, old):
        at = pages[0] if layer.window is None else pages[1]
        return LayerKV(*(each.at[at, :, slots].set(values[:, None, None]) for each in (old.keys, old.values)))

    layers = tuple(None if layer is None else put(layer, old) for layer, old in zip(layout, pool.layers, strict=True))
    return KvPool(layers, pool.ids.at[pages[0], slots].set(ids))


def numbers_of(keys):
    """Return the number in the slot of each token: a different one if any token up to there differs."""
    number, found = 0, []
    for key in keys:
        number = hash((number, key)) % 2**22
        found.append(number)
    return found


class Walk:
    """Random operations on conversations, and what they are expected to hold."""

    def __init__(self, held, rng):
        self.held, self.rng, self.paging = held, rng, held.paging
        self.keys = {}  # of each conversation

    def used(self):
        return PageTotals(self.held.whole_pages.used, self.held.local_pages.used)

    def any(self):
        return self.rng.choice(list(self.keys))

    def move(self):
        moves = [self.start] if len(self.keys) < 2 else []
        moves += [self.write, self.write, self.go_on, self.fork, self.cut, self.take_back, self.keep, self.forget]
        moves += [self.park, self.drop, self.look, self.held.give_back]
        self.rng.choice(moves if self.keys else [self.start])()

    def start(self):
        resident = self.held.start(self.rng.choice("ab"))
        self.keys[resident] = []

    def write(self, resident=None, tokens=None):
        """Grow, write some tokens, and keep the first of them."""
        resident = resident or self.any()
        start = len(self.keys[resident])
        tokens = tokens or min(start + self.rng.randint(1, CHUNK), CONTEXT)
        missing, before = self.held.missing(resident, tokens), self.used()
        if self.held.shortage(missing):
            self.drop()
            return
        self.held.grow(resident, tokens)
        assert self.used() == PageTotals(before.whole + missing.whole, before.local + missing.local)
        if self.rng.random() < 0.8:
            self.held.drop_passed(resident, tokens)
        keys = [*self.keys[resident], *(self.rng.randrange(300) for _ in range(tokens - start))]
        self.put(resident, start, keys)
        kept = self.rng.randint(start, tokens)  # the others were drafts
        self.held.index.extend(resident, keys[start:kept])
        self.keys[resident] = keys[:kept]

    def put(self, resident, start, keys):
        """Write tokens, as a program does, into pages that nobody else may have."""
        owners = self.owners()
        pages, slots, ids = (np.zeros((2, CHUNK), np.int32), *np.zeros((2, CHUNK), np.int32))
        for place, position in enumerate(range(start, len(keys))):
            number, slots[place] = divmod(position, self.paging.slots)
            pages[0, place], ids[place] = resident.whole[number], keys[position]
            assert owners["whole"][resident.whole[number]] == 1
            if self.paging.window is not None:
                pages[1, place] = resident.local[number]
                assert owners["local"][resident.local[number]] == 1
        values = np.zeros(CHUNK, np.float32)
        values[: len(keys) - start] = numbers_of(keys)[start:]
        self.held.arrays.pool = written(self.held.arrays.pool, self.held.shape.layout, pages, slots, ids, values)

    def fork(self):
        source = self.any()
        length = self.paging.reach(source.local, self.rng.randint(0, len(source.keys)))
        tokens = min(length + self.rng.randint(1, CHUNK), CONTEXT)
        missing, before = self.held.missing(source, tokens, length, branch=True), self.used()
        if self.held.shortage(missing):
            self.drop()
            return
        there = list(source.whole), dict(source.local)
        resident = self.held.fork(source, length)
        self.keys[resident] = self.keys[source][:length]
        assert (source.whole, source.local) == there
        full, owners = length // self.paging.slots, self.owners()
        assert resident.whole[:full] == source.whole[:full]
        assert self.used().whole - before.whole == len(resident.whole) - full <= 1
        own = [number for number, page in resident.local.items() if page != source.local[number]]
        assert self.used().local - before.local == len(own)
        assert own in ([], [full])
        assert not any(owners["whole"][page] > 1 for page in resident.whole[full:])
        self.write(resident, tokens)
        assert self.used().whole == before.whole + missing.whole
        assert self.used().local <= before.local + missing.local

    def cut(self):
        resident = self.any()
        length = self.paging.reach(resident.local, self.rng.randint(0, len(resident.keys)))
        self.held.cut(resident, length)
        self.keys[resident] = self.keys[resident][:length]
        assert len(resident.whole) == self.paging.count(length)

    def go_on(self):
        """Continue a conversation after its first tokens."""
        resident = self.any()
        length = self.paging.reach(resident.local, self.rng.randint(0, len(resident.keys)))
        tokens = min(length + self.rng.randint(1, CHUNK), CONTEXT)
        missing, before = self.held.missing(resident, tokens, length), self.used()
        if self.held.shortage(missing):
            self.drop()
            return
        self.held.cut(resident, length)
        self.keys[resident] = self.keys[resident][:length]
        self.write(resident, tokens)
        assert self.used().whole <= before.whole + missing.whole
        assert self.used().local <= before.local + missing.local

    def take_back(self):
        """Drop the last token, whose page stays."""
        resident = self.any()
        length = len(resident.keys) - 1
        if length >= 0 and self.paging.reach(resident.local, length) == length:
            self.held.index.truncate(resident, length)
            self.keys[resident].pop()

    def keep(self):
        self.held.index.keep_turn(self.any())

    def forget(self):
        resident = self.any()
        if resident.turns:
            self.held.forget_turn(resident, self.rng.choice(resident.turns))

    def park(self):
        """Copy a conversation to the host, drop it, and have it back."""
        old = self.any()
        wanted = sorted(self.held.index.wanted(old))
        whole, local = self.held.read(old, range(self.paging.count(len(old.keys))), wanted)
        self.held.drop(old)
        parked = replace(old, whole=[], local={}, turns=list(old.turns))
        self.held.place(parked, whole, dict(zip(wanted, local, strict=True)))
        self.keys[parked] = self.keys.pop(old)

    def drop(self):
        if self.keys:
            self.held.drop(resident := self.any())
            del self.keys[resident]

    def look(self):
        """Tables name the pages that each conversation has now."""
        rows = [self.any() for _ in range(self.rng.randint(1, 2))]
        tables = self.held.arrays.tables(rows, 3, CONTEXT)
        whole, local = np.array(tables.whole), np.array(tables.local)
        entries = local.shape[1]
        for row, resident in enumerate(rows):
            assert whole[row, : len(resident.whole)].tolist() == resident.whole
            last = len(resident.keys)
            needed = {*self.paging.local(last), *(page for page in resident.local if page >= last // self.paging.slots)}
            assert all(local[row, page % entries] == resident.local[page] for page in needed)
        assert not whole[len(rows) :].any()
        assert not local[len(rows) :].any()

    def owners(self):
        return {
            "whole": Counter(page for resident in self.keys for page in resident.whole),
            "local": Counter(page for resident in self.keys for page in resident.local.values()),
        }

    def check(self):
        held, slots = self.held, self.paging.slots
        assert set(held.index.residents) == set(self.keys)
        for kind, book in (("whole", held.whole_pages), ("local", held.local_pages)):
            owners = self.owners()[kind]
            assert book._holders == owners
            assert book.used + book.free == book._count - 1
            assert 0 not in owners
        assert held.nbytes() == held.index.nbytes() == held.sizes.of(self.used())
        if not self.keys:
            return
        layers = [
            (layer, kept) for layer, kept in zip(held.shape.layout, held.arrays.pool.layers, strict=True) if layer
        ]
        whole = [np.array(kept.keys) for layer, kept in layers if layer.window is None]
        local = [np.array(kept.values) for layer, kept in layers if layer.window is not None]
        ids = np.array(held.arrays.pool.ids)
        for resident, keys in self.keys.items():
            assert list(resident.keys) == keys
            for turn in (*resident.turns, len(keys)):
                assert self.paging.reach(resident.local, turn) == turn
            numbers = numbers_of(keys)
            for page in range(self.paging.count(len(keys))):
                some = slice(page * slots, min((page + 1) * slots, len(keys)))
                count = some.stop - some.start
                assert ids[resident.whole[page], :count].tolist() == keys[some]
                for array in whole:
                    assert (array[resident.whole[page], :, :count] == np.array(numbers[some])[:, None]).all()
                if page in resident.local:
                    for array in local:
                        assert (array[resident.local[page], :, :count] == np.array(numbers[some])[:, None]).all()


def walk(held, seed, steps):
    play = Walk(held, random.Random(seed))
    for _ in range(steps):
        play.move()
        play.check()
    while play.keys:
        play.drop()
        play.check()
    assert play.used() == PageTotals(0, 0)
    held.give_back()
    assert held.arrays._pool is None, "without conversations there is no pool"


@pytest.mark.parametrize("name", ["local and global", "all global", "a wide window", "by kernels"])
def test_pages_hold_what_was_read_whatever_others_do(model_of, name):
    held = holdings(model_of(name))
    for seed in range(20):
        walk(held, seed, 60)


@pytest.mark.long
@pytest.mark.parametrize("name", ["shared KV", "by kernels"])
def test_pages_that_programs_move_do_too(model_of, name, monkeypatch):
    monkeypatch.setattr(page_door, "is_mapped", lambda _: False)
    held = holdings(model_of(name))
    for seed in range(6):
        walk(held, seed, 60)
    assert {("copy_pages",), ("take_pages",), ("put_pages",)} <= held.device.seen


@pytest.mark.parametrize("fails", ["copy", "write"])
def test_a_device_that_fails_costs_no_page(tiny_model, fails, monkeypatch):
    held = holdings(tiny_model)
    play = Walk(held, random.Random(1))
    play.start()
    (source,) = play.keys
    play.write(source, 13)
    held.index.extend(source, range(13 - len(source.keys)))
    whole, local = held.read(source, [0, 1], [0])

    def fail(*_, **__):
        raise MemoryError("made in this test")

    monkeypatch.setattr(held.arrays._door, fails, fail)
    parked = replace(source, keys=token_keys(range(13)))
    failing = {"copy": lambda: held.fork(source, 13), "write": lambda: held.place(parked, whole, {0: local[0]})}[fails]
    with pytest.raises(MemoryError):
        failing()
    for resident in held.index.residents:
        held.drop(resident)
    assert play.used() == PageTotals(0, 0)


def test_a_pool_that_went_with_a_failed_program_is_made_anew(tiny_model):
    held = holdings(tiny_model)
    play = Walk(held, random.Random(2))
    play.start()
    play.write()
    assert not held.arrays.is_lost
    for array in jax.tree.leaves(held.arrays.pool):
        array.delete()
    assert held.arrays.is_lost
    held.give_back()  # which has nothing to give
    held.clear()
    assert (held.arrays.is_lost, held.nbytes(), held.index.residents) == (False, 0, [])
    walk(held, 4, 20)
