"""Products of a few rows, attention and what lies between, in C++ for CPUs; all works without them.

They are compiled when the package is built. ``build.py`` compiles ``native/``; ``library.py`` says whether what was
compiled can run here, and makes it known to XLA; ``products.py``, ``attention.py`` and ``between.py`` are what traced
code calls. The thread that loads a model loads the library; XLA's own threads run it. The room owns the folder ``lib``.
It may import ``config`` and ``errors``.
"""
