"""The process around the engine: its garbage collection, its log lines, and what becomes of errors that several hear.

Any thread may come here, the owner thread included, so nothing in here waits for another one. Plain Python. The room
imports no other room of the engine.
"""
