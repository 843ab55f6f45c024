"""Which rows run next, running them, and what their tokens mean.

The owner thread runs this code. ``scheduler``, ``prompt_sharing`` and ``postprocess`` are plain Python; ``runner`` is
the one file that hands arrays to programs. The room may import ``conversations``, ``executables``, ``requests``,
``device``, ``base`` and ``host``.
"""
