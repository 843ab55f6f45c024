"""Tools for ``gemma-jax chat``: those of a Python file, and those of an MCP server in a process of its own.

The main thread calls them; the output of an MCP server is read in a thread. It may import ``errors`` alone.
"""
