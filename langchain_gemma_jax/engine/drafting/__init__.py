"""Drafts: guesses of the next tokens from what was said before, and the choice of how many of them are checked.

Drafts change the speed of an answer, never the answer. Plain Python without arrays of numbers on a device. A request's
``Drafter`` belongs to the owner thread; any thread may make one. The room may import ``base``.
"""
