"""Lower-level entries: a torch module as a function that JAX traces, and a text classifier.

``module_function.py`` is for a user's own programs, ``classify.py`` for batches of texts. Neither needs the engine. The
code runs in the caller's thread, and one thread at a time traces. The room may import the rooms of ``models``.
"""
