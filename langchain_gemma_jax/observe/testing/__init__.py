"""Tests that fail when a cost comes back: pytest's side of the guards.

The module ``langchain_gemma_jax_pytest`` loads it when pytest's options ask for it. Runs in the thread in which pytest
runs tests. It may import ``observe.jax_code`` and the engine.
"""
