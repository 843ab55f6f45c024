"""Folders and files that are this user's alone: whatever this package writes, it writes here, under the same rules.

Plain Python, on any thread. The room owns no folder of its own: whoever calls names one. It imports no other room.
"""
