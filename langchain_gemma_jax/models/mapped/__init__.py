"""Weights in the order in which they are multiplied, written once to a file of the cache folder, and mapped from there.

Pages of a mapped file are shared among processes, and the system takes them back when it needs memory. The code runs on
the thread that loads a model. The room owns one folder, which one user's processes share. It may import ``private``,
``config``, ``models.checkpoint``, ``models.seams`` and ``models.configuration``.
"""
