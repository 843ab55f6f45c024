"""Guards around any JAX code: they see what XLA compiles, what is copied, and what is placed again and again.

It runs on the threads of that code, inside JAX's own hooks. It may import the engine's records, guards and settings.
"""
