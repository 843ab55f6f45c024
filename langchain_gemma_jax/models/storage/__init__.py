"""What a caller asks of how matrices are stored and multiplied, and what is left to the files and to this machine.

The thread that loads a model runs it. It may import what lies below: ``models.packed``, ``models.recipes``,
``models.checkpoint``, ``models.configuration``, and ``errors``.
"""
