"""GGUF files: where they are found, how they are read, and the Gemma in them.

The code runs on the thread that loads a model; tensors are read by several threads at once. The room owns the files
that it opens until the caller closes them. It may import ``models.packed``, ``models.tokenizer``,
``models.checkpoint``, ``models.hub`` and ``models.configuration``.
"""
