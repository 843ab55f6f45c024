"""A model on two devices: here simulated ones, so that it runs anywhere. With two cards, leave the first lines out."""

from __future__ import annotations

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"

from langchain_gemma_jax import ChatGemmaJax, engine

llm = ChatGemmaJax(model="sprout-s", devices=2, temperature=0, max_tokens=16)
print(llm.invoke("Say hello to Ada.").text)
print(*engine().models(), sep="\n")
