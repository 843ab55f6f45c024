"""The conversation so far: LangChain's messages as dialects render them, and the ids that answers were made of.

The caller's thread runs it; what is remembered belongs to the engine, is gone with it, and may be used by any thread.
The room may import ``dialects``, and the ``engine`` to ask for its memory.
"""
