"""The engine of this process for others, over HTTP: one ASGI app, and what makes a server of it.

An event loop of its own thread runs the app; it asks the engine as any event loop does, and blocks on nothing. Any
ASGI server can run the app. The room may import the chat model, ``client`` for the form of what is sent, ``observe``,
and all below them.
"""
