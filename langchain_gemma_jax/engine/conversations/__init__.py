"""Conversations' keys and values, and where they are: on the device, in host memory, on the disk, or given up.

The owner thread runs this code. ``prefix_index``, ``kv_eviction``, ``host_index`` and ``transfer_costs`` are plain
Python; ``kv_store`` decides who gets what and who gives it up; ``kv_holdings``, ``host_store``, ``disk_store`` and
``host_memory`` move arrays. The room may import ``prefix_store``, ``executables``, ``requests``, ``device``, ``base``
and ``host``.
"""
