"""Model files: which tensors a folder holds, what they are called, and how their bytes come to the device.

The thread that loads a model runs this code. The room owns the checks that a file has to pass before a byte of it
counts. It may import ``models.configuration``, the seams ``weights`` and ``placement``, and ``private``.
"""
