"""Where a model's files are: in this package, in a folder, in Ollama's store, or on the Hub.

Plain Python, run in the caller's thread. The room may import the rooms of ``models`` below it, and ``errors``.
"""
