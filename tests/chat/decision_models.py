"""LangChain's decision models and ours, where this langchain-core has any."""

from __future__ import annotations

import pytest

decisions = pytest.importorskip("langchain_core.decisions", reason="this langchain-core has no decision models")


ours = pytest.importorskip("langchain_gemma_jax.decisions")


Noul, Choice, Score = decisions.Noul, decisions.Choice, decisions.Score


STATE = "PAYMENTS HAVE FAILED FOR THREE DAYS."
