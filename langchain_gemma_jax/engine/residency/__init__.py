"""The models in memory: their bytes, their eviction when room is needed, and the records of those that were evicted.

The owner thread runs this code, except ``served`` and ``device_memory``, which loading threads use. The ledger
and its entries are plain Python without arrays. The room may import ``steps``, ``conversations``,
``executables``, ``requests``, ``device``, ``base`` and ``host``.
"""
