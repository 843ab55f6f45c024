"""What people see of the four costs: guards around any JAX code, metrics, spans, alerts, and files to install.

Everything here reads what the engine tells of and is never inside its loop: an import from here may be left out, and
nothing runs differently. Readers run on the thread that tells, and put aside what takes longer than a few
microseconds. The rooms in here may import ``engine.api``, ``engine.base`` and what is below them.
"""
