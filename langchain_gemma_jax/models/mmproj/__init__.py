"""What a GGUF model sees and hears: its encoders, which other programs keep in a file of their own (``mmproj``).

Which file belongs to a model, what its metadata mean, and what its tensors are called. The files are read on the thread
that loads a model, and once more when a first picture or sound comes. The room may import ``models.gguf``,
``models.packed``, ``models.vision`` and the rooms below them.
"""
