"""Terminals, for people: text that any terminal can show, options that are spelled right, work that can be interrupted.

Plain Python in the main thread, but for the work that this waits for. It may import ``config``.
"""
