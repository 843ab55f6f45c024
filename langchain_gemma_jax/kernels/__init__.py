"""Optional C++ kernels for CPUs: products of a few rows, attention, and the fused operations between products.

They are compiled when the package is built. ``build.py`` compiles ``native/``; ``library.py`` checks that the compiled
library can run here, and registers it with XLA; traced code calls ``products.py``, ``attention.py`` and
``fused_ops.py``. The thread that loads a model loads the library; XLA's own threads run it. The room owns the folder
``lib``. It may import ``config`` and ``errors``.
"""
