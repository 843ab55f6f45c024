"""The placement of a model that is divided among several devices of one kind."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.gemma.divided_gemma import DividedGemma
from langchain_gemma_jax.models.mesh.partitions import Partitions


@dataclass(frozen=True, repr=False)
class DeviceMesh(Partitions):
    """Several devices, which share each matrix and work together."""

    def architecture(self, kind: Architecture) -> Architecture:
        if not isinstance(kind, Gemma):
            return kind.among(self.division)
        return DividedGemma(kind.config, self, kind.encoders if self.here else ())  # no weights of theirs elsewhere
