"""Lines between two ends in one process, and what is to be closed of them."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

from langchain_gemma_jax.errors import HostLostError
from langchain_gemma_jax.scale.hosts.frames import FrameSocket
from langchain_gemma_jax.scale.hosts.line import Line

KEY, OTHER = b"k" * 32, b"o" * 32


made_ends: list[FrameSocket] = []


def ends() -> tuple[FrameSocket, FrameSocket]:
    one, other = socket.socketpair()
    made_ends.extend((FrameSocket(one), FrameSocket(other)))
    return made_ends[-2], made_ends[-1]


def lines(leads_with: bytes = KEY, follows_with: bytes = KEY) -> list[object]:
    """Both ends of a line, or the errors of those who make them."""
    one, other = ends()

    def made(side: tuple[FrameSocket, bytes]) -> object:
        frames, key = side
        try:
            return Line(frames, key, leads=frames is one)
        except HostLostError as error:
            frames.close()
            return error

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(made, ((one, leads_with), (other, follows_with))))
