"""Routes: a choice among several sizes of model for each step, with its reason. Nothing here loads or runs a model.

    llm = ChatGemmaJax(model="auto", route=Route(light="google/gemma-3-270m-it", heavy="google/gemma-3-4b-it"))

A policy is one function from ``Signals`` to a ``Choice``; ``default_policy`` is the one that is used unless a route has
its own. Plain Python, on the thread of the caller that is routed. The room may import ``errors`` alone.
"""

from langchain_gemma_jax.routing.calibration import Calibration
from langchain_gemma_jax.routing.policy import default_policy
from langchain_gemma_jax.routing.route import Policy, Route
from langchain_gemma_jax.routing.signals import Choice, Signals

__all__ = ["Calibration", "Choice", "Policy", "Route", "Signals", "default_policy"]
