"""Which models are in memory: what each takes, who goes when room is needed, what stays of those that went.

The owner thread runs this code, but for ``served`` and ``device_memory``, which loading threads ask. The books
(``ledger`` and its neighbours) are plain Python without arrays. The room may import ``steps``, ``conversations``,
``executables``, ``requests``, ``device``, ``base`` and ``host``.
"""
