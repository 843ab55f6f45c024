"""Traced code, and the one door to the device.

``programs`` and what it imports are pure functions over pytrees: their source is part of every compiled program's
name, so an edit here makes every user compile again. ``transfers`` copies to the device, runs programs there and copies
back; the owner thread alone may call it once an engine runs. The room may import ``base``, ``host``, and the models.
"""
