"""The keys and values of conversations: on the device, in host memory, on disk, or evicted.

The owner thread runs this code. ``page_books``, ``prefix_index``, ``kv_eviction``, ``host_index`` and
``transfer_costs`` are plain Python; ``kv_store`` decides which conversations get memory and which lose it;
``kv_holdings`` has the pool of pages, and ``host_store`` and ``disk_store`` move what is in them. The room may import
``prefix_store``, ``executables``, ``requests``, ``device``, ``base`` and ``host``.
"""
