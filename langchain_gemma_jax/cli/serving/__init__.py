"""The verb ``gemma-jax serve``, which answers other processes: its address, its keys, its limits and its end.

Runs on the main thread, which is the server's event loop until that ends. The room may import ``cli.terminal``, the
``server`` and all below.
"""
