"""Prefixes on disk: keys and values that outlive the process. A prefix is used only if its digests match.

Plain Python and numpy, without JAX. Any thread may run this code; long work runs in the engine's background threads.
The room owns one folder, which one user's processes share, or all machines of a deployment. It may import ``base`` and
``host``, and below the engine ``compile_cache``, ``private``, ``models``' plain values, ``config`` and ``errors``.
"""
