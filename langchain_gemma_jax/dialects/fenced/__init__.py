"""Calls of models that have no tokens for them: JSON in a block between fences, read as it comes.

Plain Python, run in the caller's thread. The room may import ``dialects.conversation``, ``grammar`` and ``errors``.
"""
