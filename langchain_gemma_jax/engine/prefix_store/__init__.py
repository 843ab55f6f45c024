"""Prefixes on the disk: keys and values that outlive the process, and are trusted no further than their digests go.

Plain Python and numpy, without JAX. Any thread may come here; what takes long runs in the engine's background threads.
The room owns one folder, which processes of one user share. It may import ``base`` and ``host``, and below the engine
``compile_cache``, ``private``, ``models``' plain values, ``config`` and ``errors``.
"""
