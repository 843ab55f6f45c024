"""Traced code, and the only access to the device.

``programs`` and what it imports are pure functions over pytrees. Their source is part of every compiled program's name,
so an edit here makes every user compile again. ``device_access`` copies to the device, runs programs there and copies
back; only the owner thread may call it once an engine runs. The room may import ``base``, ``host``, and the models.
"""
