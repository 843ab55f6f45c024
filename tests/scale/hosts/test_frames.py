"""Frames arrive whole, or not at all."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_gemma_jax.scale.hosts.frames import FrameSocket


def test_half_a_frame_is_silence():
    one, other = socket.socketpair()
    reader = FrameSocket(one)
    other.sendall(b"\0")
    for until in (None, time.monotonic()):
        with pytest.raises(TimeoutError):
            reader.recv_bytes(100, 0.01, until)
    other.close()
    with pytest.raises(EOFError):
        reader.recv_bytes(100, 60.0)
    one, other = socket.socketpair()
    sender, reader, large = FrameSocket(one), FrameSocket(other), b"x" * 3_000_000  # more than a socket holds
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(sender.send_bytes, large, 60.0)
        assert reader.recv_bytes(len(large), 60.0) == large
        sending.result()
    with pytest.raises(TimeoutError, match="nothing was taken"):
        sender.send_bytes(large, 0.01)
    with pytest.raises(OSError, match="a frame of 3000000 bytes came, where 100 are the most"):
        reader.recv_bytes(100, 60.0)
