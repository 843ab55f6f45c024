"""A chat model's calls, answered by an engine in another process: the same answers, errors and streams, without JAX.

Everything is sent in the forms of ``wire``. The caller's thread, or its event loop, sends and reads. The room may
import ``wire``, ``chat``, ``private`` and what is plain below them.
"""
