"""The APIs of a server, one in each file: from requests to LangChain's messages and options, and from answers back.

The event loop's thread runs these. They may import ``server.http``, ``client``, ``chat`` and what is below them; no
API depends on another.
"""
