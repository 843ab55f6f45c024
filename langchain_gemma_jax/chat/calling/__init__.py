"""One call, from messages to what came of it: begun, followed, ended. Also how many tokens a conversation has.

The caller's thread runs it; where the caller is an event loop, or has a deadline, threads of ``starting.py`` do what
takes long. The room may import all other rooms of ``chat``, ``dialects`` and the ``engine``.
"""
