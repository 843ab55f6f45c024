"""A request: what was asked, how far it is, what it is held to, and how its results reach the caller.

Callers' threads make requests and read from ``mailbox``; everything else of a request is the owner thread's. Plain
Python without arrays. The room may import ``device`` (for limits that programs have), ``base`` and ``host``.
"""
