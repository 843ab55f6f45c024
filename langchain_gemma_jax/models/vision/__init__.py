"""Encoders of pictures: preparation as in training, and the towers that turn pictures into soft tokens.

Preparation is numpy on the caller's thread. The towers are traced code: pure functions over a tree of weights, which
the engine runs. The room may import ``media`` and the rooms of ``models`` below it.
"""
