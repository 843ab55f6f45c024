"""Compiled programs by name: fetched from the disk, or made and kept there, ahead of need where that pays.

Any thread may ask for a program; ``background`` has the threads that make them while nobody waits. The room may
import ``requests``, ``device``, ``base`` and ``host``, and the compile cache below the engine.
"""
