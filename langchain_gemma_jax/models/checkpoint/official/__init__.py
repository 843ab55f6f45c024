"""Checkpoints of Google's own library: its parameter tree, on disk in Orbax's format or in memory.

The thread that loads a model runs this code. The room owns the library's names and shapes. It may import
``models.checkpoint`` and what that may import.
"""
