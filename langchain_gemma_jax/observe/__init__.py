"""The four costs made visible: guards around any JAX code, metrics, spans, alerts, and files to install.

Everything here reads the engine's records and is never part of its loop: the engine runs the same without it. Listeners
run on the thread that publishes a record, and hand over to a background thread what takes longer than a few
microseconds. The rooms in here may import ``engine.api``, ``engine.base`` and what is below them.
"""
