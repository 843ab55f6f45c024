"""The verbs of ``gemma-jax``, one file each: ``add`` adds the verb's options, and a function carries the verb out.

They run in the process's main thread, and may import every other room. Modules that need JAX are imported where a verb
runs, so that ``--help`` and the verbs that only look at files stay quick.
"""
