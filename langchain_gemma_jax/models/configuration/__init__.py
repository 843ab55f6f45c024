"""A model's configuration as plain values: its sizes, its layers, the shape of each of its arrays.

Any thread may use these values: they are frozen, and need neither JAX nor a file that is open. The room owns
``ModelConfig`` and what reads one from a ``config.json``. It may import ``errors`` alone.
"""
