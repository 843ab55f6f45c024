"""The page of a server: a chat in the browser, and the engine beside it while it works.

``files`` has what the browser gets: a document, a style sheet and plain modules, which ask this server alone.
``static_files`` sends them, and ``activity`` is the one thing that the page reads besides the APIs. Both run in the
event loop and in the threads beside it, never on the engine's. The room may import ``apis``, ``http``, ``observe``, and
all below them.
"""
