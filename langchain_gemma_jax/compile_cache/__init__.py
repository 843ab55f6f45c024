"""Compiled programs, kept from one process to the next, and trusted no further than their digests go.

Any thread may read and write here: JAX's own, the engine's, a person's at the terminal. The room owns the folder of
entries and the point where JAX meets it. It may import ``private``, ``config`` and ``errors``.
"""
