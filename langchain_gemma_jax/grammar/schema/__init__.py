"""JSON Schema as a grammar: what it promises, what is named because it cannot be promised, how values are written.

Plain Python, run in the caller's thread. The room may import ``grammar`` and ``errors``.
"""
