"""Which rows run next, running them, and what their tokens mean.

The owner thread runs this code. ``scheduler`` and ``postprocess`` are plain Python; ``runner``
hands arrays to programs, ``row_knobs`` has what rows are sampled with, and ``in_flight`` brings home what comes of it.
The room may import ``conversations``, ``executables``, ``requests``, ``device``, ``base`` and ``host``.
"""
