"""Chat formats that a model's own template defines: rendered in transformers' sandbox, parsed by its form of calls.

Plain Python, run in the caller's thread; transformers is imported when the first conversation is rendered. The room
may import ``dialects.fenced``, ``dialects.conversation``, ``grammar`` and ``errors``.
"""
