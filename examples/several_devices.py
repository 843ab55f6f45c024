"""A model on two devices: simulated ones here, so that it runs anywhere. For real ones, leave out jax.config."""

from __future__ import annotations

import jax

from langchain_gemma_jax import ChatGemmaJax, engine

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)

llm = ChatGemmaJax(model="sprout-s", devices=2, temperature=0, max_tokens=16)
print(llm.invoke("Hello!").text)
print(*engine().models(), sep="\n")
