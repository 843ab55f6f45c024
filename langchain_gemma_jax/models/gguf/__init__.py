"""GGUF files: where they are, what is in them, and a Gemma made of it.

Everything here runs on the thread that loads a model, but for the reading of tensors, which several threads do at
once. The room owns the files that it opens until the caller closes them. It may import ``models.packed``,
``models.tokenizer``, ``models.checkpoint``, ``models.hub`` and ``models.configuration``.
"""
