"""The input and output of every chat format: messages and tools, prompts in pieces, events of a model's output.

Plain values, no framework's classes, made and read in the caller's thread. The room may import
``grammar.json_value``, the blocks of ``media``, and ``errors``.
"""
