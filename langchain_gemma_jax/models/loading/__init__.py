"""Loading in three steps: find the files and open them, plan the model, read its weights.

Runs on the thread that loads a model, never on the owner thread. Arrays are put on devices here, and nothing keeps
running behind a load. The room may import every room of ``models`` but ``models.torchax.doors``.
"""
