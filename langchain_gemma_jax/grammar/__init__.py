"""Grammars that restrict a text: made of JSON schemas and patterns, and written for llguidance.

Plain Python without arrays. A grammar is made in the caller's thread, where tools are bound, long before there is a
model. ``nodes`` has the parts of a grammar, ``pattern_text`` and ``terminals`` regular expressions; ``lark`` and
``reading`` use llguidance; ``schema/`` compiles JSON Schema. The native notation of calls is not JSON, so llguidance's
own schema compiler is not enough. The room may import ``errors`` alone.
"""
