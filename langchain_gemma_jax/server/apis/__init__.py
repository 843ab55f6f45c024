"""What can be asked of a server, an API a file: requests to LangChain's messages and options, answers back.

The event loop's thread runs these. They may import ``server.http``, ``client``, ``chat`` and what is below them; no
API knows another.
"""
