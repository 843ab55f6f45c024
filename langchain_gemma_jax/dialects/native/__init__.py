"""The notation that models with tools of their own were trained in: declarations, calls and results by control tokens.

One notation with other control tokens for each format; it is written, read and held to here. Plain Python, run in the
caller's thread. The room may import ``dialects.conversation``, ``grammar`` and ``errors``.
"""
