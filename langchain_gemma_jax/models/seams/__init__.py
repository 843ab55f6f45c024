"""The seams, which all kinds of models and files share: placement, weight, architecture, tensor source.

Each file has one interface, with its simplest implementation. The code is traced, or runs on the thread that loads a
model or that owns the engine. The room may import ``models.configuration`` and ``kernels``.
"""
