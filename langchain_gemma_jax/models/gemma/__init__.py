"""Gemma's arithmetic: attention, feed-forward, the cache of keys and values, and the forward pass over all layers.

Pure functions of arrays, which the engine traces on its own threads. A change here makes all programs compile again.
The room may import ``models.configuration``, ``models.recipes`` and the seams ``weights`` and ``architecture``.
"""
