"""Ids that a short or a wrong name may mean."""

from __future__ import annotations

from langchain_gemma_jax.models.configuration.catalog import known
from langchain_gemma_jax.models.hub.hub_request import is_model_id
from langchain_gemma_jax.models.hub.known_ids import hub_id, meant_by


def test_names_that_are_shown_can_be_used():
    assert all(is_model_id(hub_id(name)) for name in known())
    assert meant_by("zebra") is None
