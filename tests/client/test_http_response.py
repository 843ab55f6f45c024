"""Responses, however they are cut, and what is none."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax import ServerError
from langchain_gemma_jax.client.http_response import LARGEST_HEAD, ResponseReader, request

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED = (
    HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\none\nt\r\n6;x=y\r\nwo\nthr\r\nA\r\nee\n4\n5\n6\n7\r\n0\r\n\r\n"
)
COUNTED = HEAD + b"content-length: 21\r\n\r\none\ntwo\nthree\n4\n5\n6\n7"
UNTIL_END = b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"\r\none\ntwo\nthree\n4\n5\n6\n7"


@pytest.mark.parametrize("whole", [CHUNKED, COUNTED, UNTIL_END])
def test_lines_are_the_same_however_they_come(whole):
    for seed in range(200):
        draw = random.Random(seed)
        reader, lines, at = ResponseReader(), [], 0
        while at < len(whole):
            size = draw.choice([1, 1, 2, 3, 7, 1000])
            lines += reader.take(whole[at : at + size])
            at += size
        last = reader.rest()
        assert (reader.status, reader.is_whole) == (200, True)
        assert [*lines, last] == [b"one", b"two", b"three", b"4", b"5", b"6", b"7"]


@pytest.mark.parametrize("whole", [CHUNKED, COUNTED])
def test_what_is_cut_off_is_not_whole(whole):
    for end in range(len(whole) - 1):
        reader = ResponseReader()
        reader.take(whole[:end])
        reader.rest()
        assert not reader.is_whole or end >= len(whole) - 2  # the line's end behind the last chunk


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\naXX",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1" * 300,
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * LARGEST_HEAD,
    ],
)
def test_what_is_no_response_is_an_error(data):
    with pytest.raises(ServerError, match="speaks no HTTP"):
        ResponseReader().take(data)


def test_a_request():
    made = request("/x", "localhost", b"{}", {"A": "b"})
    assert made.startswith(b"POST /x HTTP/1.1\r\nHost: localhost\r\n")
    assert made.endswith(b"Content-Length: 2\r\nConnection: close\r\nA: b\r\n\r\n{}")
