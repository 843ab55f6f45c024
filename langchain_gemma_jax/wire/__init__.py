"""Everything that a chat model and a server send each other, as JSON: messages, options, errors, warnings; addresses.

Plain Python on the thread that sends or reads. Nothing in these forms can name code, and each is checked again where
it arrives. ``client``, ``server`` and ``scale`` import the room; it may import ``chat``, ``dialects``, ``engine.base``,
``media`` and ``private``.
"""
