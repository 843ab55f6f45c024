"""The choice of the model that takes a step of a conversation, and of a larger one that has to answer instead.

The caller's thread runs it, or the one that begins the call. The room may import ``answering``, ``asking`` and
``history`` of ``chat``, ``routing``, and the ``engine`` for the status of its models.
"""
