"""The notation of models that were trained with tools: declarations, calls and results between control tokens.

The notation is the same for each format, with different control tokens; this room writes it, parses it, and has its
grammar. Plain Python, run in the caller's thread. The room may import ``dialects.conversation``, ``grammar`` and
``errors``.
"""
