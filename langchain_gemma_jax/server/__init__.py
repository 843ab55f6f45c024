"""The engine of this process for other processes, over HTTP: an ASGI app, and the server that runs it.

An event loop in a thread of its own runs the app. It calls the engine as any event loop does, and never blocks. Any
ASGI server can run the app. The room may import the chat model, ``client`` for the form of what is sent, ``observe``,
and all below them.
"""
