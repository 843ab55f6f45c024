"""Several answers at once: whole ones, and the pieces of all."""

from __future__ import annotations

import asyncio

import pytest

from langchain_gemma_jax import InputError
from langchain_gemma_jax.server.apis.side_by_side import MOST, all_of, answer_count, as_they_come, seed_of


def test_a_request_says_how_many_answers_it_wants():
    assert [answer_count(told) for told in (None, 1, MOST)] == [1, 1, MOST]
    for wrong in (0, -1, MOST + 1, True, 1.0, "2", []):
        with pytest.raises(InputError, match="n: expected a whole number from 1 to 128"):
            answer_count(wrong)


def test_each_answer_has_a_seed_of_its_own():
    assert [seed_of(7, number) for number in range(3)] == [7, 8, 9]
    assert (seed_of(None, 2), seed_of("x", 2)) == (None, "x")


async def test_pieces_come_from_all_of_them_and_in_order_from_each():
    gates = [asyncio.Event() for _ in range(3)]

    async def source(number):
        for piece in range(4):
            yield piece
            gates[(number + 1) % 3].set()
            await gates[number].wait()

    gates[0].set()
    for count in (1, 3):
        found = [each async for each in as_they_come([source(number) for number in range(count)])]
        assert [[piece for who, piece in found if who == number] for number in range(count)] == [[0, 1, 2, 3]] * count


async def test_one_that_fails_ends_the_others():
    for run in (_failing_whole, _failing_pieces):
        ended = []
        with pytest.raises(ZeroDivisionError):
            await run(ended)
        assert ended == ["ended"]


async def test_who_stops_listening_ends_them_all():
    ended = []
    coming = as_they_come([_forever(ended), _forever(ended)])
    await anext(coming)
    await coming.aclose()
    assert ended == ["ended"] * 2


async def _forever(ended):
    try:
        yield 0
        await asyncio.Event().wait()
    finally:
        ended.append("ended")


async def _fails():
    await asyncio.sleep(0)
    raise ZeroDivisionError


async def _failing_whole(ended):
    async def waits():
        async for _ in _forever(ended):
            pass

    await all_of([waits(), _fails()])


async def _failing_pieces(ended):
    async def broken():
        await _fails()
        yield 1

    async for _ in as_they_come([_forever(ended), broken()]):
        pass
