"""The callers' side of the engine: the one engine of a process, its models, its requests, its report.

Callers' own threads run this code; what only the owner thread may touch is handed to it. The room owns the
singleton (``process``), the ``Engine``, the ``Generation`` that a caller reads, and loading. It may import every
other room of the engine, and none of them imports it.
"""
