"""The engine: it runs models for many callers on one thread, and shares the device's memory among them.

    from langchain_gemma_jax import Sampling, engine

    served = engine().load("google/gemma-3-1b-it")                       # loaded once for the process
    generation = engine().submit(served, prompt_ids, Sampling(max_tokens=64))

``README.md`` has a picture of the loop, and says what each room owns. Callers use ``api``; its ``process.py`` makes
sure that a process has one engine. Each room says which thread runs it. The rooms in here may import ``grammar``,
``compile_cache``, ``models`` and what is below them.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.api.engine import Engine


class _Room(ModuleType):
    """A module that can be called: ``engine`` is the public function and this package, whichever was imported first."""

    def __call__(self) -> Engine:
        from langchain_gemma_jax.ancestry import ancestry
        from langchain_gemma_jax.engine.host.gc_pause import collected_later

        ancestry.refuse_forked()  # before any import
        with collected_later():
            from langchain_gemma_jax.engine.api.process import engine
        return engine()


sys.modules[__name__].__class__ = _Room
