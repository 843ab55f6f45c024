"""The owner thread: its loop, and what happens when something in it fails.

One thread runs the device, and ``owner.py`` has its loop: in each round ``admission`` admits requests, ``dispatching``
sends their work to the device, ``results`` processes the results. They share ``work_in_hand``. The room may import
every room of the engine but ``api``. No code here blocks on a caller.
"""
