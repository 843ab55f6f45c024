"""Tests that fail when a cost comes back: pytest's side of the guards.

``langchain_gemma_jax_pytest``, beside the package, loads it when it is asked for. Runs in the thread in which pytest
runs tests. It may import ``observe.jax_code`` and the engine.
"""
