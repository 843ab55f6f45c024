"""Calls of models without tokens for calls: JSON in a fenced block, read while it comes.

Plain Python, run in the caller's thread. The room may import ``dialects.conversation``, ``grammar`` and ``errors``.
"""
