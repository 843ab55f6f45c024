"""JSON Schema compiled to grammars, with a list of the requirements that a grammar cannot promise.

Plain Python, run in the caller's thread. The room may import ``grammar`` and ``errors``.
"""
