"""A chat model's calls, answered by an engine in another process: the same answers, errors and streams, without JAX.

What crosses the wire is JSON, a line for each piece: nothing in it can name code. The caller's thread, or its event
loop, sends and reads. The room may import ``chat``, ``dialects``, ``private`` and what is plain below them; the server
imports this room for the form of what is sent.
"""
