"""Chat formats that a model's own template spells out: rendered by transformers' sandbox, parsed by how it shows calls.

Plain Python, run in the caller's thread; transformers is imported when the first conversation is rendered. The room
may import ``dialects.fenced``, ``dialects.conversation``, ``grammar`` and ``errors``.
"""
