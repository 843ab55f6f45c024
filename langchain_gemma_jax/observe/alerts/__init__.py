"""Alerts: trips of guards, sent to people.

Records are taken on the thread that publishes them, and sent from a thread of the sender's own; nothing waits for that
thread. It may import the engine's records.
"""
