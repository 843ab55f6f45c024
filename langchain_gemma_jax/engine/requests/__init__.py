"""Requests: their arguments, progress, grammar and stop strings, and the way of their results to the caller.

Callers' threads make requests and read from ``mailbox``; the rest of a request belongs to the owner thread. Plain
Python without arrays. The room may import ``drafting``, ``device`` (for limits of programs), ``base`` and ``host``.
"""
