"""One call, from messages to its outcome: begun, followed, ended. Also the count of a conversation's tokens.

The caller's thread runs it; where the caller is an event loop, or has a deadline, threads of ``starting.py`` do what
takes long. The room may import all other rooms of ``chat``, ``dialects`` and the ``engine``.
"""
