"""Terminals: text that any terminal can show, hints for misspelled options, work that Ctrl-C can interrupt.

Plain Python in the main thread, but for the work that this waits for. It may import ``config``.
"""
