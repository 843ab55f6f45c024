"""Connections and requests before it is known what they ask: bounded, timed, named, and over when a client leaves.

The event loop's thread runs these. The room may import ``client``, ``private`` and what is plain below them.
"""
