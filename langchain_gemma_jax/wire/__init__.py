"""The forms of what crosses the wire between a chat model and a server: messages, options, errors, warnings, addresses.

Plain Python on whichever thread sends or reads. Nothing in these forms can name code, and each is checked again where
it arrives. ``client``, ``server`` and ``scale`` import the room; it may import ``chat``, ``dialects``, ``engine.base``,
``media`` and ``private``.
"""
