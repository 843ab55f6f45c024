"""The subjects of ``gemma-jax doctor``: this machine, and an engine that answers in processes of its own.

Runs in the main thread, and in the processes that it starts. It may import every room below.
"""
