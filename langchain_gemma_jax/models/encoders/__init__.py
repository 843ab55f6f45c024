"""The files of encoders: in a model's folder, in an Orbax checkpoint, or in a file beside a GGUF model (``mmproj``).

What is there, what its configuration means, and what its tensors are called. The files are read on the thread that
loads a model, and once more when a first picture or sound comes. The room may import ``models.gguf``,
``models.checkpoint``, ``models.packed``, ``models.vision``, ``models.tokenizer`` and the rooms below them.
"""
