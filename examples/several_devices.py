"""A model divided among two devices, and once on each: simulated ones, so that it runs anywhere."""

from __future__ import annotations

import jax

from langchain_gemma_jax import ChatGemmaJax, engine

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)

llm = ChatGemmaJax(model="sprout-s", devices=2, temperature=0, max_tokens=16)
print(llm.invoke("Hello!").text)
small = ChatGemmaJax(model="sprout-s", replicas="auto", temperature=0, max_tokens=16)  # itself on each of them
print([answer.text for answer in small.batch(["Hello!", "Good morning!"])])
print(*engine().models(), sep="\n")
