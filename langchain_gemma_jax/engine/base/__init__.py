"""Plain values that every room of the engine may use: options, settings, ladders, counters, limits.

No arrays and no threads of its own; any thread may read. The room may import ``host``.
"""
