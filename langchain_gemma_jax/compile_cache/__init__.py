"""The cache of compiled programs on disk, from one process to the next. An entry is used only if its digest matches.

Any thread may read and write here: JAX's, the engine's, a command's. The room owns the folder of entries and the hooks
by which JAX uses it. It may import ``private``, ``config`` and ``errors``.
"""
