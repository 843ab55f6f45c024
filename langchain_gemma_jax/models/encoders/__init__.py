"""The files of encoders: in a model's folder, in an Orbax checkpoint, or in the ``mmproj`` file of a GGUF model.

The room reads their configuration and names their tensors. The files are opened on the thread that loads a model, and
again when the first picture or sound comes. The room may import ``models.gguf``,
``models.checkpoint``, ``models.packed``, ``models.vision``, ``models.tokenizer`` and the rooms below them.
"""
