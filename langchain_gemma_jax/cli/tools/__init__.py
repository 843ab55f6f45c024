"""Tools that ``gemma-jax chat`` calls: those of a Python file, and those of an MCP server that is a process of its own.

The main thread calls them; what an MCP server says is read in a thread. It may import ``errors`` alone.
"""
