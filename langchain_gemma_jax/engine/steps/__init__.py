"""Steps: scheduling of requests, running them on the device, and processing of their tokens.

The owner thread runs this code. ``scheduler`` and ``postprocess`` are plain Python; ``runner``
calls programs with arrays, ``row_knobs`` has rows' sampling parameters, and ``in_flight`` fetches the results.
The room may import ``conversations``, ``executables``, ``requests``, ``device``, ``base`` and ``host``.
"""
