"""Products of a few rows, and attention, in C++ for CPUs, compiled when the package is built; all works without them.

``build.py`` compiles ``native/``; ``library.py`` says whether what was compiled can run here, and makes it known to
XLA; ``products.py`` and ``attention.py`` are what traced code calls. The thread that loads a model loads the library;
XLA's own threads run it. The room owns the folder ``lib``. It may import ``config`` and ``errors``.
"""
