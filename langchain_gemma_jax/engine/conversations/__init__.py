"""The keys and values of conversations: on the device, in host memory, on disk, or evicted.

The owner thread runs this code. ``prefix_index``, ``kv_eviction``, ``host_index`` and ``transfer_costs`` are plain
Python; ``kv_store`` decides which conversations get memory and which lose it; ``kv_holdings``, ``host_store``,
``disk_store`` and
``host_memory`` move arrays. The room may import ``prefix_store``, ``executables``, ``requests``, ``device``, ``base``
and ``host``.
"""
