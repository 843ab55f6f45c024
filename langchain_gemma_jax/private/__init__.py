"""Folders and files that are this user's alone: whatever this package writes, it writes here, under the same rules.

Plain Python, on any thread. It imports nothing of the package.
"""
