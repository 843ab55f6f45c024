"""Plain values that every room of the engine may use: options, settings, ladders, counters, limits.

It has no arrays and no threads; any thread may read. The room may import ``host``.
"""
