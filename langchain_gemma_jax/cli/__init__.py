"""The command ``gemma-jax``: one file a verb, in ``verbs``. ``command`` finds the verb and turns errors into statuses.

The room owns what is written to the terminal, in the process's main thread. It may import every other room, and imports
JAX in no verb that can do without it.
"""
