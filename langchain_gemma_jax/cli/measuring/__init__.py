"""Verbs that measure how good a model's answers are, where those in ``verbs`` measure how fast they come.

They run in the process's main thread, and may import every other room. JAX is imported where a verb runs.
"""
