"""Folders and files that belong to this user alone. Everything that the package writes follows the rules of this room.

Plain Python, on any thread. The room owns no folder: the caller names one. It imports no other room.
"""
