"""What the models can do, one skill a file. Each is a function from a ``World`` to a ``Conversation``."""
