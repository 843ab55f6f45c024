"""The verbs of ``gemma-jax``, one file each: ``add`` says what a verb takes, and a function carries it out.

They run in the process's main thread, and may import every other room. Whatever needs JAX is imported where a verb
runs, so that ``--help`` and the verbs that only look at files stay quick.
"""
