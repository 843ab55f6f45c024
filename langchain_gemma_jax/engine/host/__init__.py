"""The process around the engine: garbage collection, log lines, warnings, and errors that several callers receive.

Any thread may run code of this room, the owner thread included, so nothing in here waits for another thread. Plain
Python. The room imports no other room of the engine.
"""
