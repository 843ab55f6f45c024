"""Loading in three steps: find the files and open them, plan the model, read its weights.

The code runs on the thread that loads a model, never on the owner thread. It puts arrays on devices, and leaves nothing
running after a load. The room may import every room of ``models`` but ``models.torchax.doors``.
"""
