"""What a text is held to: JSON schemas and patterns as grammars, and grammars as llguidance reads them.

Plain Python without arrays; a grammar is made in the caller's thread, where tools are bound, long before there is a
model. ``nodes`` is what a grammar is made of, ``pattern_text`` and ``terminals`` are regular expressions, ``lark`` and
``reading`` are what llguidance is told; ``schema/`` compiles JSON Schema. The room may import ``errors`` alone.
"""
