"""The verb that has other processes answered: where it listens, whom it answers, when it ends.

Runs on the main thread, which is the server's event loop until that ends. The room may import ``cli.terminal``, the
``server`` and all below.
"""
