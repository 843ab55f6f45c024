"""Ollama's API, for programs that speak it: chats, prompts, vectors, lists of models, fetching.

The event loop's thread runs these; requests are read, and models' files looked at, in threads beside it. The room may
import ``server.apis``, ``server.http``, ``chat`` and what is below them.
"""
