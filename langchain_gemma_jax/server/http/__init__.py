"""Connections, requests and responses below any API: limited, timed, authenticated, and over when a client leaves.

The event loop's thread runs these. The room may import ``client``, ``private`` and what is plain below them.
"""
