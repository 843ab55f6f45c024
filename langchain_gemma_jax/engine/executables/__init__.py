"""Compiled programs by name: fetched from disk, or compiled and kept there, ahead of need where that is worth it.

Any thread may ask for a program; ``background`` has the threads that make programs ahead of need. The room may
import ``requests``, ``device``, ``base`` and ``host``, and the compile cache below the engine.
"""
