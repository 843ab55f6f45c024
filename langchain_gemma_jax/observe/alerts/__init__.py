"""Alerts: what guards tell of, told to people.

Records are taken on the thread that tells, and sent from a thread of the sender's own, which is never waited for. It
may import the engine's records.
"""
