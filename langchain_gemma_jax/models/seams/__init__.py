"""The seams that every kind of model and every kind of file speaks: placement, weight, architecture, tensor source.

Each file states one of them, with its simplest implementation. Their code is traced, or runs on the thread that loads
a model or that owns the engine. The room may import ``models.configuration`` and ``kernels``.
"""
