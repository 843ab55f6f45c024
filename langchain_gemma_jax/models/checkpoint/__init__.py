"""Model files: the tensors that a folder holds, their names, and how their bytes are read.

The thread that loads a model runs this code. The room owns the checks that a file has to pass before any of it is
used. It may import ``models.configuration``, the seams ``weights`` and ``placement``, and ``private``.
"""
