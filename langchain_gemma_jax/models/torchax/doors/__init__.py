"""Lower doors: a torch module as a function that JAX traces, and texts told apart by a model with labels.

``module_function.py`` is for programs of one's own, ``classify.py`` for batches of texts. Neither needs the engine. The
caller's thread does the work, and one thread at a time traces. The room may import the rooms of ``models``.
"""
