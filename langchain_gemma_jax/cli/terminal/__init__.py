"""Terminals, for people: text that any terminal can show, numbers that can be read, options that are spelled right.

Plain Python in the main thread. It may import ``config``.
"""
