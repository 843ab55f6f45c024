"""Guards around anybody's JAX code: what XLA compiles there, what is copied, what is placed again and again.

It runs on the threads of that code, inside JAX's own hooks. It may import the engine's records, guards and settings.
"""
