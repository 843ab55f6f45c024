"""The owner thread: its loop, and what happens when something in it fails.

One thread runs the device, and ``owner.py`` is what it does, round after round: ``admission`` lets requests in,
``dispatching`` hands their work to the device, ``results`` looks at what comes of it. They share ``work_in_hand``. The
room may import every room of the engine but ``api``. Nothing here blocks on a caller.
"""
