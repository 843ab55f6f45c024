"""What every chat format takes and gives: messages and tools, a prompt in pieces, events of what a model writes.

Plain values without a framework's classes, made and read in the caller's thread. The room may import
``grammar.json_value``, the blocks of ``media``, and ``errors``.
"""
